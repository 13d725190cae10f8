// Threads that read, each on a connection of its own, beside the writer and never waiting for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "item.hpp"

namespace holdfast::sqlite {

class readers {
public:
    readers(const options& how, const statements& texts, runtime& on, int threads);
    ~readers() { close(); }
    // Finishes what is waiting, and takes nothing more.
    void close();
    bool submit(item& i) noexcept; // false: closing

private:
    void run();

    const options& how_;
    const statements& texts_;
    runtime& on_;
    std::mutex mutex_;
    std::condition_variable changed_;
    item_list waiting_;
    bool closing_ = false;
    std::vector<std::jthread> threads_;
};

struct reader_lane {
    readers& to;
    bool submit(item& i) noexcept { return to.submit(i); }
    static error refusal() { return store_closed(); }
};

} // namespace holdfast::sqlite
