// A mail server with bad days, on a port of its own: busy, slow, and sometimes it takes a mail and hangs up before it
// says so. It recognises a mail that it has by the sender's key.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

struct mailbox_entry {
    int delivered = 0;  // mails in the customer's mailbox
    int requests = 0;   // times that somebody asked
    int recognised = 0; // of those, for a mail that was there already
};

class mail_server {
public:
    mail_server();
    ~mail_server();
    mail_server(const mail_server&) = delete;
    mail_server& operator=(const mail_server&) = delete;

    std::uint16_t port() const { return port_; }
    int delivered() const { return delivered_; }
    // By the sender's key.
    std::map<std::string, mailbox_entry> entries() const;

private:
    void serve(std::stop_token stop);
    void answer(int connection);
    std::string take(const std::string& key, const std::string& to);

    int listener_ = -1;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    std::map<std::string, mailbox_entry> entries_;
    std::atomic<int> delivered_ = 0;
    std::vector<std::jthread> threads_;
};

// Sends one mail and gives the server's answer, "250 …"; empty when it hung up. Throws when it cannot be reached.
std::string ask_mail_server(std::uint16_t port, const std::string& key, const std::string& to);
