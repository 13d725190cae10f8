#include "unit.hpp"

#include <filesystem>
#include <system_error>

namespace holdfast::sqlite {

error joined_lane::refusal() const {
    return {on.stopped() ? errc::stopped : errc::overloaded,
            on.stopped() ? "sqlite: the runtime has stopped" : "sqlite: the blocking pool's queue is full",
            std::nullopt};
}

void joined_lane::run_call(work& w, wake) noexcept {
    auto& lane = static_cast<joined_lane&>(w);
    session& s = lane.to;
    item& call = *lane.call;
    runtime& on = lane.on;
    try {
        if (!s.in_transaction())
            throw failed({errc::invalid_argument, "sqlite: the joined transaction is not open any more", {}});
        s.exec(query::savepoint);
        s.tick();
        call.execute(s);
        s.exec(query::release);
    } catch (...) {
        call.refuse(current_error());
        try {
            s.exec(query::rollback_to);
            s.exec(query::release);
        } catch (const failed&) { // not begun, or undone by SQLite itself: there is no savepoint to go back to
        }
    }
    finish(call, on);
}

namespace {

struct drop final : item {
    drop() noexcept : item(kind::unit_dropped) {}
    void execute(session&) override {}
    void refuse(const error&) override {}
};

class own_unit final : public unit {
public:
    using unit::unit;
    ~own_unit() override {
        if (ended_) return;
        auto rolled_back = std::make_unique<drop>();
        if (of_->writes.submit_to_unit(*rolled_back)) static_cast<void>(rolled_back.release()); // the writer deletes it
    }

    task<result<void>> commit() override { return end(item::kind::unit_commit); }
    task<result<void>> rollback() override { return end(item::kind::unit_rollback); }

private:
    task<result<void>> end(item::kind how) {
        if (ended_) co_return fail(errc::invalid_argument, "sqlite: the unit of work has ended");
        ended_ = true;
        const auto alive = of_;
        unit_step<unit_lane> step({alive->writes}, how);
        co_return co_await step;
    }
};

class joined_unit final : public unit {
public:
    joined_unit(std::shared_ptr<core> of, sqlite3* db) : unit(std::move(of)) {
        joined_ = std::make_unique<session>(db, of_->texts, of_->how);
    }
    task<result<void>> commit() override { return owners_business(); }
    task<result<void>> rollback() override { return owners_business(); }

private:
    static task<result<void>> owners_business() {
        co_return fail(errc::invalid_argument,
                       "sqlite: a joined transaction is ended by the application that began it");
    }
};

bool same_file(const char* theirs, const std::string& ours) {
    std::error_code ignored;
    return theirs != nullptr && std::filesystem::equivalent(theirs, ours, ignored);
}

} // namespace

task<result<std::unique_ptr<unit_of_work>>> begin_unit(std::shared_ptr<core> of) {
    unit_step<writer_lane> step({of->writes}, item::kind::unit_begin);
    const result<void> begun = co_await step;
    if (!begun) co_return std::unexpected(begun.error());
    co_return std::make_unique<own_unit>(std::move(of));
}

result<std::unique_ptr<unit_of_work>> join_unit(std::shared_ptr<core> of, sqlite3* db) {
    const char* theirs = sqlite3_db_filename(db, "main");
    if (!same_file(theirs, of->how.file))
        return fail(errc::invalid_argument, "sqlite: the transaction is on " +
                                                std::string(theirs == nullptr || *theirs == '\0' ? "no file" : theirs) +
                                                ", the store is on " + of->how.file);
    if (sqlite3_get_autocommit(db) != 0)
        return fail(errc::invalid_argument, "sqlite: the connection has no transaction open");
    return std::make_unique<joined_unit>(std::move(of), db);
}

} // namespace holdfast::sqlite
