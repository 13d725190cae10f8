// What a lab puts between the worker and the user's handlers: it sees handlers begin and end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/job_type.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/simulated_runtime.hpp>

namespace holdfast::lab {

class kept_lines final : public logger {
public:
    bool enabled(log_level) const noexcept override { return true; }
    void write(log_level level, std::string_view message) noexcept override {
        try {
            lines_.push_back(std::string(to_text(level)) + " " + std::string(message));
        } catch (...) { // a line that does not fit is dropped
        }
    }
    const std::vector<std::string>& all() const noexcept { return lines_; }

private:
    std::vector<std::string> lines_;
};

// Rings when a handler begins or ends.
class handler_bell {
public:
    // Moves time until it rings; false when it has not by the limit.
    bool wait(simulated_runtime& time, duration limit) {
        parker rung;
        alarm late{{}, rung};
        late.run = &alarm::sound;
        const bool armed = time.arm(late, saturating_add(time.now(), limit));
        waiting_ = &rung;
        time.wait(rung);
        waiting_ = nullptr;
        return armed && time.cancel(late);
    }
    void ring() noexcept {
        if (parker* waiting = std::exchange(waiting_, nullptr)) waiting->unpark();
    }

private:
    struct alarm : timer {
        parker& rung;
        static void sound(work& w, wake) noexcept { static_cast<alarm&>(w).rung.unpark(); }
    };

    parker* waiting_ = nullptr;
};

class observed_type final : public job_type {
public:
    observed_type(std::unique_ptr<job_type> inner, handler_bell& bell) : inner_(std::move(inner)), bell_(bell) {}

    const job_options& options() const noexcept override { return inner_->options(); }
    holdfast::restart restart() const noexcept override { return inner_->restart(); }
    const exception_policy* rules() const noexcept override { return inner_->rules(); }
    task<result<void>> run(payload what, job_context& context) override {
        const ringing seen(bell_);
        auto running = inner_->run(std::move(what), context);
        co_return co_await std::move(running);
    }
    task<happened> probe(payload what, job_context& context) override {
        const ringing seen(bell_);
        auto asking = inner_->probe(std::move(what), context);
        co_return co_await std::move(asking);
    }

private:
    struct ringing {
        handler_bell& bell;
        explicit ringing(handler_bell& b) noexcept : bell(b) { bell.ring(); }
        ~ringing() { bell.ring(); }
        ringing(const ringing&) = delete;
        ringing& operator=(const ringing&) = delete;
    };

    std::unique_ptr<job_type> inner_;
    handler_bell& bell_;
};

} // namespace holdfast::lab
