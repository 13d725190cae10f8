// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

#include <unistd.h>

namespace holdfast::detail {

class file_handle {
public:
    file_handle() = default;
    explicit file_handle(int number) noexcept : number_(number) {}
    file_handle(file_handle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    file_handle& operator=(file_handle&& other) noexcept {
        close();
        number_ = std::exchange(other.number_, -1);
        return *this;
    }
    ~file_handle() { close(); }

    int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }
    void close() noexcept {
        if (number_ >= 0) ::close(std::exchange(number_, -1));
    }

private:
    int number_ = -1;
};

} // namespace holdfast::detail
