// For plugin authors: who watches what, as job_store::watch() and event_transport::watch() ask for it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

// Watch is job_watch or event_watch. Any thread. Watches may outlive it; they are silent then.
template <class Watch>
class watchers {
public:
    std::unique_ptr<Watch> add(std::vector<std::string> names, std::function<void()> hint) {
        auto made = std::make_unique<watch>(board_, std::move(names), std::move(hint));
        const std::lock_guard lock(board_->mutex);
        board_->watches.push_back(made.get());
        return made;
    }

    // Calls the hints of those who watch one of these, each once, on this thread, without a lock held.
    void ring(std::span<const std::string> names) const {
        call_those([&](const watch& w) { return std::ranges::find_first_of(w.names, names) != w.names.end(); });
    }
    void ring_all() const {
        call_those([](const watch&) { return true; });
    }

    bool empty() const {
        const std::lock_guard lock(board_->mutex);
        return board_->watches.empty();
    }
    // Everything that somebody watches, each once.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        {
            const std::lock_guard lock(board_->mutex);
            for (const watch* each : board_->watches) all.insert(all.end(), each->names.begin(), each->names.end());
        }
        std::ranges::sort(all);
        all.erase(std::ranges::unique(all).begin(), all.end());
        return all;
    }

private:
    struct watch;
    struct board {
        std::mutex mutex;
        std::condition_variable idle;
        std::vector<watch*> watches;
    };
    struct watch final : Watch {
        watch(std::shared_ptr<board> on, std::vector<std::string> what, std::function<void()> call)
            : of(std::move(on)), names(std::move(what)), hint(std::move(call)) {}
        ~watch() override {
            std::unique_lock lock(of->mutex);
            std::erase(of->watches, this);
            of->idle.wait(lock, [&] { return calls == 0; });
        }
        std::shared_ptr<board> of;
        const std::vector<std::string> names;
        const std::function<void()> hint;
        int calls = 0; // under way
    };

    template <class Wanted>
    void call_those(Wanted wanted) const {
        std::vector<watch*> found;
        {
            const std::lock_guard lock(board_->mutex);
            for (watch* each : board_->watches) {
                if (!wanted(*each)) continue;
                found.push_back(each);
                ++each->calls;
            }
        }
        for (watch* each : found) {
            each->hint();
            const std::lock_guard lock(board_->mutex);
            if (--each->calls == 0) board_->idle.notify_all();
        }
    }

    std::shared_ptr<board> board_ = std::make_shared<board>();
};

} // namespace holdfast
