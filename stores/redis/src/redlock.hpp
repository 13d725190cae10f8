// Locks on a majority of several servers that know nothing of each other: they outlive the loss of less than half of
// them. docs/stores.md says what can still go wrong.
#pragma once

#include <memory>
#include <vector>

#include "core.hpp"

namespace holdfast::redis {

// A holder first gets a promise from a majority, then writes its token, larger than any that one of them knows, to a
// majority. Two majorities share a server, so a later token is larger. Any thread.
class redlock_facet final : public lock_store {
public:
    // Each server of how.lock_servers, with connections of its own.
    redlock_facet(const store_options& how, runtime& on);

    task<result<std::optional<lock_lease>>> try_acquire(std::string resource, duration ttl) override;
    task<result<void>> renew(const lock_lease& held, duration ttl) override;
    task<result<void>> release(const lock_lease& held) override;

    // A majority must be there; the others are prepared when they are.
    task<result<void>> prepare() { return on_each(&core::prepare_now); }
    task<result<void>> destroy() { return on_each(&core::destroy_now); }
    // As the weakest of them keeps it; one that was not asked yet promises little.
    survives writes_survive() const;

private:
    enum class vote : unsigned char { yes, no, unknown };
    struct answer {
        vote said = vote::unknown;
        bool promised_to_another = false; // who is about to get the lock
        double token = 0;
        std::string problem{}; // when unknown
    };
    struct ballot {
        std::vector<core*> yes;
        std::size_t no = 0;
        bool promised_to_another = false;
        double token = 0; // the largest
        std::string problem;
        void count(core* server, answer each);
    };
    using decoder = answer (*)(reply&);
    static answer to_vote(reply& from);
    task<answer> ask(core* server, script which, arguments with, decoder decode);
    task<std::vector<answer>> ask_all(std::vector<core*> which, script what, arguments with, decoder decode);
    // Second part of try_acquire.
    task<result<std::optional<lock_lease>>> confirm(std::string resource, std::string me, duration ttl,
                                                    ballot promised);
    // A promise by its name, or a lock by its token.
    task<ballot> take_back(std::string resource, std::string by);
    task<result<void>> on_each(result<void> (scripted_server::*what)());

    std::size_t majority() const noexcept { return servers_.size() / 2 + 1; }
    std::vector<core*> all() const;

    runtime& on_;
    duration timeout_;
    std::vector<std::unique_ptr<core>> servers_;
};

} // namespace holdfast::redis
