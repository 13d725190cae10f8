#include "transport_rules.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <holdfast/event_limits.hpp>
#include <holdfast/runtime_clock.hpp>

namespace holdfast::events_memory {

namespace {

std::unexpected<error> no_subscription(const std::string& name) {
    return std::unexpected(store_limits::no_subscription(name));
}

delivery_lease make_lease(const std::string& subscription, position at, std::uint64_t token) {
    return {std::to_string(at) + ":" + subscription, token};
}

struct leased_place {
    position at = 0;
    std::string subscription;
};
leased_place place_of(const delivery_lease& lease) {
    const std::string& text = lease.subject();
    leased_place place;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), place.at);
    if (read.ptr != text.data() + text.size()) place.subscription.assign(read.ptr + 1, text.data() + text.size());
    return place;
}

} // namespace

void transport_rules::wake(const std::string& name) {
    if (std::ranges::find(woken_, name) == woken_.end()) woken_.push_back(name);
}

subscription_book* transport_rules::book_of(const std::string& name) {
    const auto found = books_.find(name);
    return found == books_.end() ? nullptr : &found->second;
}
const subscription_book* transport_rules::book_of(const std::string& name) const {
    const auto found = books_.find(name);
    return found == books_.end() ? nullptr : &found->second;
}

result<void> transport_rules::publish(std::vector<envelope> batch, store_time now) {
    std::erase_if(batch, [&](const envelope& each) { return positions_.contains(each.id); });
    for (const auto& [name, book] : books_) {
        if (book.open_count() < with_.max_backlog) continue;
        if (std::ranges::none_of(batch, [&](const envelope& each) { return book.topics.contains(each.topic); }))
            continue;
        return std::unexpected(store_limits::overloaded(name, book.open_count(), with_.max_backlog));
    }
    for (envelope& each : batch) {
        const position at = last_position_ + 1;
        if (!positions_.emplace(each.id, at).second) continue; // twice in the batch
        last_position_ = at;
        for (auto& [name, book] : books_) {
            if (!book.topics.contains(each.topic)) continue;
            book.open(at, each.key, 1, now);
            wake(name);
        }
        messages_.emplace(at, kept{std::move(each), now});
    }
    return {};
}

void transport_rules::subscribe(const subscription& what, store_time now) {
    const auto [place, is_new] = books_.try_emplace(what.name);
    place->second.topics = {what.topics.begin(), what.topics.end()};
    if (!is_new || !what.from_start) return;
    for (const auto& [at, each] : messages_)
        if (place->second.topics.contains(each.message.topic)) place->second.open(at, each.message.key, 1, now);
    wake(what.name);
}

bool transport_rules::unsubscribe(const std::string& name) {
    if (books_.erase(name) == 0) return false;
    std::erase_if(graves_, [&](const auto& each) { return each.second.subscription == name; });
    return true;
}

std::vector<subscription_view> transport_rules::subscriptions(store_time now) const {
    std::vector<subscription_view> all;
    for (const auto& [name, book] : books_) all.push_back(book.view(name, now));
    return all;
}

result<std::vector<delivery>> transport_rules::receive(const std::string& name, int limit, duration lease_for,
                                                       store_time now) {
    subscription_book* book = book_of(name);
    if (book == nullptr) return no_subscription(name);
    std::vector<delivery> given;
    for (const position at : book->give(limit, now + in_store_time(lease_for), last_token_, now)) {
        const entry& e = *book->find(at);
        given.push_back({make_lease(name, at, e.token), at, e.redeliveries, e.crashes, e.calls, e.generation,
                         messages_.at(at).message});
    }
    return given;
}

std::vector<write_answer> transport_rules::renew(std::span<const delivery_lease* const> held, duration lease_for,
                                                 store_time now) {
    std::vector<write_answer> answers;
    for (const delivery_lease* each : held) {
        const leased_place place = place_of(*each);
        subscription_book* book = book_of(place.subscription);
        answers.push_back(book == nullptr ? write_answer::gone
                                          : book->renew(place.at, each->token(), now + in_store_time(lease_for)));
    }
    return answers;
}

std::vector<write_answer> transport_rules::settle(std::span<const delivery_settlement> which, store_time now) {
    std::vector<write_answer> answers;
    for (const delivery_settlement& each : which) {
        const leased_place place = place_of(*each.held);
        subscription_book* book = book_of(place.subscription);
        if (book == nullptr) {
            answers.push_back(write_answer::gone);
            continue;
        }
        const entry* before = book->find(place.at);
        const bool was_open = before != nullptr && before->is == entry::state::open;
        const std::size_t ready = book->ready_count();
        const std::uint64_t death = last_death_ + 1;
        answers.push_back(book->settle(place.at, each.held->token(), each, death, now));
        if (answers.back() != write_answer::done || !was_open) continue;
        if (book->ready_count() > ready) wake(place.subscription); // it, or the next of its key
        if (each.how != delivery_settlement::kind::dead_letter || before->death != death) continue;
        last_death_ = death;
        graves_.emplace(death, grave{place.subscription, place.at});
    }
    return answers;
}

result<std::optional<duration>> transport_rules::next_due(const std::string& name, store_time now) const {
    const subscription_book* book = book_of(name);
    if (book == nullptr) return no_subscription(name);
    return book->next_due(now);
}

dead_message transport_rules::describe(const std::string& name, position at, const entry& e) const {
    return {name, at, e.died, e.redeliveries, e.crashes, e.calls, e.generation, e.error, messages_.at(at).message};
}

result<dead_message_page> transport_rules::dead_messages(const dead_message_filter& filter, int limit,
                                                         const std::string& cursor) const {
    std::uint64_t below = last_death_ + 1;
    if (!cursor.empty()) {
        const auto read = std::from_chars(cursor.data(), cursor.data() + cursor.size(), below);
        if (read.ec != std::errc() || read.ptr != cursor.data() + cursor.size())
            return fail(errc::invalid_argument, "the cursor is not one that this transport gave");
    }
    dead_message_page page;
    for (auto at = std::make_reverse_iterator(graves_.lower_bound(below)); at != graves_.rend(); ++at) {
        const grave& each = at->second;
        if (filter.subscription && *filter.subscription != each.subscription) continue;
        if (filter.topic && *filter.topic != messages_.at(each.at).message.topic) continue;
        if (page.messages.size() == static_cast<std::size_t>(limit)) {
            page.next = std::to_string(at->first + 1);
            break;
        }
        page.messages.push_back(describe(each.subscription, each.at, *books_.at(each.subscription).find(each.at)));
    }
    return page;
}

const entry* transport_rules::find_dead(const std::string& name, const identifier& id, position& at) const {
    const subscription_book* book = book_of(name);
    const auto place = positions_.find(id);
    if (book == nullptr || place == positions_.end()) return nullptr;
    at = place->second;
    const entry* found = book->find(at);
    return found != nullptr && found->is == entry::state::dead ? found : nullptr;
}

std::optional<dead_message> transport_rules::dead_message_of(const std::string& name, const identifier& id) const {
    position at = 0;
    const entry* found = find_dead(name, id, at);
    if (found == nullptr) return std::nullopt;
    return describe(name, at, *found);
}

int transport_rules::send_again(const std::string& name, const std::vector<identifier>& which, store_time now) {
    int count = 0;
    for (const identifier& id : which) {
        position at = 0;
        const entry* found = find_dead(name, id, at);
        if (found == nullptr) continue;
        graves_.erase(found->death);
        book_of(name)->open(at, messages_.at(at).message.key, found->generation + 1, now);
        wake(name);
        ++count;
    }
    return count;
}

int transport_rules::discard(const std::string& name, const std::vector<identifier>& which) {
    int count = 0;
    for (const identifier& id : which) {
        position at = 0;
        const entry* found = find_dead(name, id, at);
        if (found == nullptr) continue;
        graves_.erase(found->death);
        book_of(name)->bury(at);
        ++count;
    }
    return count;
}

result<std::uint64_t> transport_rules::replay(const std::string& name, const replay_point& from, store_time now) {
    subscription_book* book = book_of(name);
    if (book == nullptr) return no_subscription(name);
    std::uint64_t count = 0;
    for (auto at = messages_.lower_bound(from.position.value_or(0)); at != messages_.end(); ++at) {
        const kept& each = at->second;
        if (from.time && each.published < *from.time) continue;
        if (!book->topics.contains(each.message.topic)) continue;
        const entry* seen = book->find(at->first);
        if (seen != nullptr && seen->is == entry::state::open) continue;
        if (seen != nullptr && seen->is == entry::state::dead) graves_.erase(seen->death);
        book->open(at->first, each.message.key, (seen != nullptr ? seen->generation : 1) + 1, now);
        ++count;
    }
    if (count > 0) wake(name);
    return count;
}

int transport_rules::sweep(int limit, store_time now) {
    const store_time oldest = now - in_store_time(with_.keep);
    int count = 0;
    for (auto at = messages_.begin(); at != messages_.end() && count < limit && at->second.published < oldest;) {
        const position which = at->first;
        if (std::ranges::any_of(books_, [&](const auto& each) { return each.second.needs(which); })) {
            ++at;
            continue;
        }
        for (auto& [name, book] : books_) book.forget(which);
        positions_.erase(at->second.message.id);
        at = messages_.erase(at);
        ++count;
    }
    return count;
}

void transport_rules::clear() {
    messages_.clear();
    positions_.clear();
    books_.clear();
    graves_.clear();
}

} // namespace holdfast::events_memory
