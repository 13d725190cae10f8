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
    int recognised = 0; // asked for twice, recognised by its key
    int crashed = 0;    // mails that a worker died over
    int unfinished = 0;
    std::map<int, int> by_attempts;          // of those delivered
    std::map<std::string, int> dead_because; // of the dead

    bool good() const { return mails > 0 && delivered_once + dead == mails && delivered_more == 0; }
};

desk_report make_report(const std::vector<holdfast::job_view>& jobs, const mail_server& server);
void print(const desk_report& report, double seconds);
