// Publishing: what comes back is what was given, all or nothing, and the same id is one message.
#include "store_names.hpp"
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

void comes_back_as_it_was(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    envelope sent = user.make("order-7");
    sent.what = {
        .type = "order.placed", .version = 4, .content_type = "text/plain", .body = std::string("a\0b\xFF", 4)};
    sent.extra = {{"traceparent", "00-a-b-01"}, {"empty", ""}, {"odd \r\n \"name\"", "%s {} \xF0\x9F\x90\xA2"}};
    user.publish(sent);
    const delivery got = user.receive_one();
    check_equal(got.message.id, sent.id, "id");
    check_equal(got.message.topic, sent.topic, "topic");
    check_equal(got.message.key, sent.key, "key");
    check(got.message.what == sent.what, "payload");
    check(got.message.extra == sent.extra, "headers");
    check_equal(got.redeliveries, 0, "redeliveries");
    check_equal(got.crashes, 0, "crashes");
    check_equal(got.calls, 0, "calls");
    check_equal(got.generation, 1, "generation");
    check(got.lease.token() > 0, "tokens start above zero");
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive while it is leased");
    user.done(got);
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive afterwards");
}

void the_same_id_is_one_message(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    envelope one = user.make("k", "orders", "first");
    user.publish(one);
    one.what.body = "second";
    user.publish(one);
    in.ok(user.transport().publish({user.make("l"), one, one}), "publish");
    auto got = user.receive(10);
    check_equal(got.size(), std::size_t{2}, "messages to receive");
    check_equal(got[0].message.what.body, std::string("first"), "the body that is kept");
    for (const delivery& each : got) user.done(each);
    user.publish(one);
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive when a settled one is published again");
}

void twice_within_one_call(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const envelope one = user.make("");
    in.ok(user.transport().publish({one, one, user.make("")}), "publish");
    check_equal(user.waiting_for(), std::size_t{2}, "messages to receive");
}

void all_or_none(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    envelope nameless = user.make("");
    nameless.topic.clear();
    in.refused(user.transport().publish({user.make("a"), nameless, user.make("b")}), {errc::invalid_argument},
               "publishing a batch with a message that has no topic");
    envelope anonymous = user.make("");
    anonymous.id = {};
    in.refused(user.transport().publish({user.make("a"), anonymous}), {errc::invalid_argument},
               "publishing a batch with a message that has no id");
    check_equal(user.waiting_for(), std::size_t{0}, "messages of batches that were refused");
    in.ok(user.transport().publish({}), "publishing nothing");
}

void sizes(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    std::string large(10u << 20, 'x');
    large[5] = '\0';
    large[6] = '\xFF';
    user.publish(user.make("", "orders", ""));
    user.publish(user.make("", "orders", large));
    const auto got = user.receive(2);
    check_equal(got.size(), std::size_t{2}, "messages received");
    check(got[0].message.what.body.empty(), "a body of nothing comes back as nothing");
    check(got[1].message.what.body == large, "a body of 10 MB comes back as it was");
    in.refused(user.transport().publish({user.make("a"), user.make("", "orders", large + "x")}), {errc::too_large},
               "publishing a body above the limit");
    check_equal(user.waiting_for(), std::size_t{0}, "messages of the batch that was refused");
}

void max_payload_is_kept(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(user.make("", "orders", std::string(100, 'x')));
    in.refused(user.transport().publish({user.make("", "orders", std::string(101, 'x'))}), {errc::too_large},
               "publishing a body above max_payload");
    check_equal(user.waiting_for(), std::size_t{1}, "messages");
}

void any_bytes(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    for (const std::string& each : odd_bytes()) {
        user.publish(user.make(each, "orders", each));
        const delivery got = user.receive_one();
        check(got.message.what.body == each, "the body is any bytes");
        check(got.message.key == each, "the key is any bytes");
        user.done(got);
    }
}

void odd_topics_and_subscriptions(transport_lab& in) {
    const event_user user(in);
    for (const std::string& each : odd_names()) user.subscribe(each, {each});
    for (const std::string& each : odd_names()) user.publish(user.make(each, each));
    for (const std::string& each : odd_names()) {
        const delivery got = user.receive_one(5min, each);
        check_equal(got.message.topic, each, "topic");
        check_equal(got.message.key, each, "key");
        check_equal(user.renew(got), write_answer::done, "renew");
        user.bury(got, {each, each, each});
        const auto dead = user.dead({.subscription = each});
        check_equal(dead.size(), std::size_t{1}, "dead letters of the subscription");
        check_equal(dead[0].error.message, each, "the error of the dead letter");
        check_equal(user.view(each).topics, std::vector{each}, "topics of the subscription");
    }
}

void names_have_limits(transport_lab& in) {
    const event_user user(in);
    const std::string long_name(64 << 10, 'x');
    for (const std::string& bad : {std::string("a\0b", 3), std::string("\xFF"), std::string()}) {
        in.refused(user.transport().subscribe({bad, {"orders"}, false}), {errc::invalid_argument}, "subscribe");
        in.refused(user.transport().subscribe({"billing", {bad}, false}), {errc::invalid_argument}, "subscribe");
        in.refused(user.transport().publish({user.make("", bad)}), {errc::invalid_argument}, "publish");
    }
    in.refused(user.transport().publish({user.make("", long_name)}), {errc::too_large}, "a topic of 64 KB");
    in.refused(user.transport().publish({user.make(long_name)}), {errc::too_large}, "a key of 64 KB");
    in.refused(user.transport().subscribe({long_name, {"orders"}, false}), {errc::too_large}, "a name of 64 KB");
    in.refused(user.transport().subscribe({"billing", {}, false}), {errc::invalid_argument}, "no topics");
}

void many_in_one_call(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(1000, "");
    check_equal(user.drain(300), ids, "what was received, in the order of publishing");
}

void nobody_listens(transport_lab& in) {
    const event_user user(in);
    user.publish("", "nobody");
    user.subscribe();
    user.publish("", "nobody");
    check_equal(user.waiting_for(), std::size_t{0}, "messages of another topic");
}

} // namespace

transport_case_list publishing_cases() {
    return {
        {"a message comes back as it was", comes_back_as_it_was},
        {"the same id is one message, also after it was settled", the_same_id_is_one_message},
        {"the same id twice in one call is one message", twice_within_one_call},
        {"a batch with one bad message publishes nothing", all_or_none},
        {"a body of nothing, of 10 MB, and above the limit", sizes},
        {"max_payload is the limit", max_payload_is_kept, {{"max_payload", "100"}}},
        {"bodies and keys are any bytes", any_bytes},
        {"names with quotes, %s, CRLF, braces and emoji are only names", odd_topics_and_subscriptions},
        {"names have their limits", names_have_limits},
        {"a thousand in one call", many_in_one_call},
        {"what nobody listens to is published all the same", nobody_listens},
    };
}

} // namespace holdfast::conformance
