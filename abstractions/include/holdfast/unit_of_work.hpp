// Several writes to one store that happen together or not at all.
#pragma once

#include <typeinfo>

#include <holdfast/error.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// Made by store::begin() or, inside a transaction of the application's own, by store::join(). Pass it to the calls
// that are to be part of it. One thread at a time; destroying it uncommitted rolls it back (a joined one is left to
// its owner). Works only with the store that made it.
class unit_of_work {
public:
    virtual ~unit_of_work() = default;

    // Everything, durably, or nothing. errc::unknown_outcome: the connection was lost meanwhile; read back before
    // trying again. errc::duplicate or errc::stale_lease: what an earlier call answered no longer holds; a later
    // call in the unit may find that out as well. A joined one is committed by the application: this call then fails
    // with errc::invalid_argument.
    virtual task<result<void>> commit() = 0;
    virtual task<result<void>> rollback() = 0;

protected:
    unit_of_work() = default;
    unit_of_work(const unit_of_work&) = delete;
    unit_of_work& operator=(const unit_of_work&) = delete;
};

// A transaction of the application's own, as its library hands it out: a pqxx::transaction_base, a sqlite3*.
struct native_transaction {
    void* handle = nullptr;
    const std::type_info* type = nullptr;

    template <class T>
    static native_transaction of(T& object) noexcept {
        return {&object, &typeid(T*)}; // of the pointer: T may be incomplete, as sqlite3 is
    }
    template <class T>
    T* as() const noexcept {
        return type != nullptr && *type == typeid(T*) ? static_cast<T*>(handle) : nullptr;
    }
};

} // namespace holdfast
