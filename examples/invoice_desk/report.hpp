// What became of every mail, by the store's word and by the mail server's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <holdfast/job_store.hpp>

#include "mail_server.hpp"

struct desk_report {
    int mails = 0;
    int delivered_once = 0;
    int delivered_more = 0;
    int lost = 0;       // acknowledged, and neither delivered nor dead-lettered
    int dead = 0;       // and rightly so
    int at_odds = 0;    // delivered, but their jobs ended as something else than succeeded
    int recognised = 0; // asked for twice, recognised by its key
    int crashed = 0;    // mails that a worker died over
    int unfinished = 0;
    bool killed = false;                     // a worker, in the middle of it
    int worker_code = 0;                     // with which the last one ended
    std::map<int, int> by_attempts;          // of those delivered
    std::map<std::string, int> dead_because; // of the dead

    bool good() const {
        return mails > 0 && delivered_once + dead == mails && delivered_more + lost + at_odds + unfinished == 0 &&
               killed && worker_code == 0;
    }
};

desk_report make_report(const std::vector<holdfast::job_view>& jobs, const mail_server& server);
void print(const desk_report& report, double seconds);
