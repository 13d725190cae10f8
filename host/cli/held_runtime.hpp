#pragma once

#include <memory>
#include <utility>

#include <holdfast/plugin_library.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast::cli {

// A plugin's runtime with all that it needs to live, as one object.
class held_runtime final : public runtime {
public:
    explicit held_runtime(plugin_instance<runtime> made) noexcept : inner_(std::move(made)) {}

    std::string_view name() const noexcept override { return inner_->name(); }
    time_point now() const noexcept override { return inner_->now(); }
    bool post(work& w) noexcept override { return inner_->post(w); }
    bool post_blocking(work& w) noexcept override { return inner_->post_blocking(w); }
    bool arm(timer& t, time_point due) noexcept override { return inner_->arm(t, due); }
    bool cancel(timer& t) noexcept override { return inner_->cancel(t); }
    std::unique_ptr<readable_watch> watch_readable(int descriptor) override {
        return inner_->watch_readable(descriptor);
    }
    void wait(parker& p) noexcept override { inner_->wait(p); }
    void stop() noexcept override { inner_->stop(); }
    bool stopped() const noexcept override { return inner_->stopped(); }

private:
    plugin_instance<runtime> inner_;
};

} // namespace holdfast::cli
