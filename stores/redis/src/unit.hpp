// A unit of work: calls are answered as if they had happened, and happen together in one script at the commit, which
// checks that every answer still holds. Nothing is locked meanwhile.
#pragma once

#include <string>
#include <vector>

#include <holdfast/unit_of_work.hpp>

#include "core.hpp"

namespace holdfast::redis {

class redis_unit final : public unit_of_work {
public:
    // The core must outlive it.
    explicit redis_unit(core& of) noexcept : core_(of) {}

    task<result<void>> commit() override;
    task<result<void>> rollback() override;

    // One more call; its answer. `name` is one that lua_unit.cpp knows.
    task<result<reply>> add(std::string name, arguments with);

    // The unit that a caller passed to this store; errc::invalid_argument when it is another's.
    static result<redis_unit*> from(unit_of_work* in, const core& of);

private:
    struct step {
        std::string name;
        arguments with;
        std::string answer; // packed
    };
    arguments all_steps(bool commits) const;
    result<void> check_open() const;

    core& core_;
    std::vector<step> steps_;
    bool ended_ = false;
};

} // namespace holdfast::redis
