#pragma once

#include <memory>
#include <utility>

#include <holdfast/event_consumer.hpp>

#include "event_settings.hpp"

namespace holdfast::detail {

// A consumer with the options that [consumers.NAME] gives it.
class tuned_consumer final : public event_consumer {
public:
    tuned_consumer(std::unique_ptr<event_consumer> inner, const consumer_override& how)
        : inner_(std::move(inner)), options_(inner_->options()) {
        how.apply_to(options_);
    }
    std::string_view name() const noexcept override { return inner_->name(); }
    std::string_view topic() const noexcept override { return inner_->topic(); }
    const consumer_options& options() const noexcept override { return options_; }
    bool wants_unit() const noexcept override { return inner_->wants_unit(); }
    task<result<void>> run(const envelope& what, event_context& context, unit_opener* units) override {
        return inner_->run(what, context, units);
    }

private:
    std::unique_ptr<event_consumer> inner_;
    consumer_options options_;
};

} // namespace holdfast::detail
