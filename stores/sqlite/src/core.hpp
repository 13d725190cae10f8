// What the facets share: the writer, the readers, and where a call that is part of a unit of work goes.
#pragma once

#include <memory>
#include <utility>

#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/unit_of_work.hpp>

#include "file_watch.hpp"
#include "readers.hpp"
#include "writer.hpp"

namespace holdfast::sqlite {

struct core {
    core(options given, runtime& runs) : how(std::move(given)), texts(how.prefix), on(runs) {}

    const options how;
    const statements texts;
    runtime& on;
    job_watchers watchers;
    writer writes{how, texts, on, watchers};
    readers reads{how, texts, on, 2};
    file_watch others{how, texts, watchers};
};

// A unit of work of this plugin: on the writer, or on the application's own connection.
class unit : public unit_of_work {
public:
    explicit unit(std::shared_ptr<core> of) noexcept : of_(std::move(of)) {}

    const core* owner() const noexcept { return of_.get(); }
    bool ended() const noexcept { return ended_; }
    session* joined() const noexcept { return joined_.get(); } // null: it is on the writer

protected:
    std::shared_ptr<core> of_;
    std::unique_ptr<session> joined_;
    bool ended_ = false;
};

// To the application's own connection, on a thread that may block. A failure undoes that call alone.
struct joined_lane : work {
    joined_lane(runtime& runs, session& there) noexcept : on(runs), to(there) { run = &run_call; }
    bool submit(item& i) noexcept {
        call = &i;
        return on.post_blocking(*this);
    }
    error refusal() const;

    runtime& on;
    session& to;
    item* call = nullptr;

private:
    static void run_call(work& w, wake) noexcept;
};

// The value of f(session), in a transaction of its own or as part of `in`.
template <class Function>
task<result<std::invoke_result_t<Function&, session&>>> write(core& c, unit_of_work* in, Function f) {
    if (in == nullptr) {
        submitted<writer_lane, Function> call({c.writes}, std::move(f));
        co_return co_await call;
    }
    auto* part_of = dynamic_cast<unit*>(in);
    if (part_of == nullptr || part_of->owner() != &c)
        co_return fail(errc::invalid_argument, "sqlite: the unit of work was made by another store");
    if (part_of->ended()) co_return fail(errc::invalid_argument, "sqlite: the unit of work has ended");
    if (session* joined = part_of->joined()) {
        submitted<joined_lane, Function> call({c.on, *joined}, std::move(f));
        co_return co_await call;
    }
    submitted<unit_lane, Function> call({c.writes}, std::move(f));
    co_return co_await call;
}

// The value of f(session) as the file is now.
template <class Function>
task<result<std::invoke_result_t<Function&, session&>>> read(core& c, Function f) {
    submitted<reader_lane, Function> call({c.reads}, std::move(f));
    co_return co_await call;
}

} // namespace holdfast::sqlite
