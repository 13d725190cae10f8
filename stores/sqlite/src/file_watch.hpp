// Hints about what others write to the file: other processes, and the application in transactions that were joined. At
// rest it sleeps until the system says that the write-ahead log was written to.
#pragma once

#include <mutex>
#include <thread>

#include <holdfast/job_watchers.hpp>

#include "session.hpp"

namespace holdfast::sqlite {

class file_watch {
public:
    file_watch(const options& how, const statements& texts, const job_watchers& who) noexcept
        : how_(how), texts_(texts), who_(who) {}
    ~file_watch() { close(); }
    file_watch(const file_watch&) = delete;
    file_watch& operator=(const file_watch&) = delete;

    // Any thread. Starts the thread, if it does not run yet.
    void start();
    void close();

private:
    void run(const std::stop_token& stop);
    void watch_file(const std::stop_token& stop);
    enum class sign : unsigned char { none, written, gone };
    // At most so long; shorter when it is time to stop.
    sign wait_for_write(int changes, duration at_most) const;
    void look(session& reads) const;
    void pause(duration d) const noexcept; // shorter when it is time to stop

    const options& how_;
    const statements& texts_;
    const job_watchers& who_;
    std::mutex mutex_;
    bool closed_ = false;
    int stopped_ = -1; // an eventfd
    std::jthread thread_;
};

} // namespace holdfast::sqlite
