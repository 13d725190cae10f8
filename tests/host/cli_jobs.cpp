#include "catch.hpp"

#include <regex>

#include <holdfast/host.hpp>
#include <holdfast/job_header.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/sync_wait.hpp>

#include "process.hpp"

using namespace holdfast;
using namespace support;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

using kind = settlement::kind;

// A SQLite store that the tests fill and the command looks at.
struct job_desk {
    job_desk() {
        config = folder
                     .write("desk.toml", "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR
                                         "']\n[store]\nplugin = 'sqlite'\nfile = 'desk.db'\n")
                     .string();
    }

    // Fills the store by a host of the test's own, closed again before the command opens it.
    template <class Fill>
    void with_store(Fill fill) {
        auto mine = host::from_file(config);
        mine.log_to(std::make_shared<null_logger>());
        mine.start();
        fill(mine);
    }
    template <class T>
    static T get(host& in, task<result<T>> what) {
        auto answer = sync_wait(in.runtime(), std::move(what));
        if (!answer) throw failed(answer.error());
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }

    std::string enqueue(host& in, std::string type, std::string queue = "mail", std::string body = "{}",
                        std::optional<std::string> key = {}) {
        new_job made;
        made.id = ids.next();
        made.what = {.type = std::move(type), .body = std::move(body)};
        made.queue = std::move(queue);
        made.unique_key = std::move(key);
        get(in, in.job_store().enqueue({made}));
        return to_text(made.id);
    }
    void end(host& in, kind how, job_error error = {}, std::string queue = "mail") {
        auto claimed = get(in, in.job_store().claim({.queues = {std::move(queue)}, .limit = 1, .worker = "w:1:x"}));
        const settlement one[] = {
            {.held = &claimed.at(0).lease, .how = how, .error = std::move(error), .output = "fine"}};
        get(in, in.job_store().settle(one));
    }
    // So many jobs that ended so; gives their ids.
    std::vector<std::string> ended(kind how, int count = 1, std::string queue = "mail") {
        std::vector<std::string> made;
        with_store([&](host& in) {
            for (int i = 0; i < count; ++i) {
                made.push_back(enqueue(in, "invoice.send", queue));
                end(in, how, {"smtp_error", "550 mailbox unavailable"}, queue);
            }
        });
        return made;
    }

    support::ended run(std::vector<std::string> words) const {
        words.insert(words.end(), {"--config", config});
        return run_holdfast(std::move(words));
    }
    std::string out(std::vector<std::string> words) const {
        const auto done = run(std::move(words));
        INFO(done.err);
        CHECK(done.code == 0);
        CHECK(done.err.empty());
        return done.out;
    }
    // "code message" of a call that fails.
    std::string refusal(std::vector<std::string> words) const {
        const auto done = run(std::move(words));
        return std::to_string(done.code) + " " + done.out + done.err;
    }

    temporary_folder folder;
    std::string config;
    identifier_source ids;
};

std::string squeezed(const std::string& text) {
    return std::regex_replace(text, std::regex(" +"), " ");
}

} // namespace

TEST_CASE("holdfast jobs list shows dead letters with the reason") {
    job_desk desk;
    const auto id = desk.ended(kind::dead_letter).front();
    const std::string text = squeezed(desk.out({"jobs", "list", "--state", "dead_letter", "--queue", "mail"}));
    CHECK_THAT(text, StartsWith("ID JOB ATTEMPTS DEAD SINCE WHY\n" + id + " invoice.send 1/3 "));
    CHECK_THAT(text, ContainsSubstring("smtp_error: 550 mailbox unavailable\n"));
    CHECK(desk.out({"jobs", "list", "--state", "succeeded"}) == "no jobs\n");
}

TEST_CASE("holdfast jobs list filters, limits and pages") {
    job_desk desk;
    desk.with_store([&](host& in) {
        std::vector<new_job> many(1203);
        for (new_job& each : many) {
            each.id = desk.ids.next();
            each.what = {.type = "bulk", .body = "{}"};
        }
        desk.get(in, in.job_store().enqueue(std::move(many)));
        desk.enqueue(in, "other");
    });
    const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
    CHECK(lines(desk.out({"jobs", "list"})) == 1 + 50 + 1);
    CHECK_THAT(desk.out({"jobs", "list"}), ContainsSubstring("there are more"));
    CHECK(lines(desk.out({"jobs", "list", "--limit", "0"})) == 1 + 1204);
    CHECK(lines(desk.out({"jobs", "list", "--limit", "1100", "--type", "bulk"})) == 1 + 1100 + 1);
    CHECK(lines(desk.out({"jobs", "list", "--queue", "mail"})) == 1 + 1);
    CHECK_THAT(desk.out({"jobs", "list", "--type", "other", "--json"}),
               ContainsSubstring("\"job\":\"other\",\"state\":\"pending\",\"queue\":\"mail\""));
    CHECK_THAT(desk.out({"jobs", "list", "--limit", "1", "--json"}), ContainsSubstring("],\"more\":true}"));
}

TEST_CASE("holdfast jobs show tells everything about a job, its generations included") {
    job_desk desk;
    std::string id;
    desk.with_store([&](host& in) {
        id = desk.enqueue(in, "invoice.send", "mail", R"({"to":"a@example.org"})");
        desk.end(in, kind::dead_letter, {"smtp_error", "550"});
        desk.get(in, in.job_store().requeue({*parse_identifier(id)}));
        desk.end(in, kind::succeed);
    });
    const std::string text = squeezed(desk.out({"jobs", "show", id}));
    CHECK_THAT(text, StartsWith("id " + id + "\njob invoice.send, version 1\n"));
    CHECK_THAT(text, ContainsSubstring("\nattempts 1/3, generation 2, 0 crashes\n"));
    CHECK_THAT(text, ContainsSubstring("\npayload {\"to\":\"a@example.org\"}\n"));
    CHECK_THAT(text, ContainsSubstring("\nGENERATION ATTEMPT STARTED TOOK OUTCOME WORKER WHY\n1 1 "));
    CHECK_THAT(text, ContainsSubstring(" dead_letter w:1:x smtp_error: 550\n2 1 "));
    const std::string json = desk.out({"jobs", "show", id, "--json"});
    CHECK_THAT(json, ContainsSubstring(R"("body":"{\"to\":\"a@example.org\"}")"));
    CHECK_THAT(json, ContainsSubstring(R"("history":[{"generation":1,"attempt":1,)"));
}

TEST_CASE("attempts that were made in process are counted, until a new generation begins") {
    job_desk desk;
    new_job made;
    made.id = desk.ids.next();
    made.what = {.type = "invoice.send", .body = "{}"};
    made.queue = "mail";
    made.extra[std::string(job_header::attempts_before)] = "4";
    const std::string id = to_text(made.id);
    desk.with_store([&](host& in) {
        desk.get(in, in.job_store().enqueue({made}));
        desk.end(in, kind::dead_letter, {"smtp_error", "550"});
    });
    CHECK_THAT(squeezed(desk.out({"jobs", "list"})), ContainsSubstring("dead_letter 5/7 "));
    const std::string text = squeezed(desk.out({"jobs", "show", id}));
    CHECK_THAT(text, ContainsSubstring("\nattempts 5/7, 4 of them in process, generation 1, 0 crashes\n"));
    CHECK_THAT(text, ContainsSubstring(" WHY\n1 5 "));
    const std::string json = desk.out({"jobs", "show", id, "--json"});
    CHECK_THAT(json, ContainsSubstring(R"("attempts":5,"max_attempts":7)"));
    CHECK_THAT(json, ContainsSubstring(R"("history":[{"generation":1,"attempt":5,)"));

    desk.out({"jobs", "retry", id});
    CHECK_THAT(squeezed(desk.out({"jobs", "show", id})),
               ContainsSubstring("\nattempts 0/3, generation 2, 0 crashes\n"));
}

TEST_CASE("holdfast jobs show prints the stack of a crash in lines of its own") {
    job_desk desk;
    std::string id;
    desk.with_store([&](host& in) {
        id = desk.enqueue(in, "invoice.send", "mail");
        desk.end(in, kind::dead_letter, {"crashed: SIGSEGV", "crashed too often\nmain+0x12 \x1b[31m\nstart+0x1"});
    });
    const std::string text = squeezed(desk.out({"jobs", "show", id}));
    CHECK_THAT(text, ContainsSubstring("\nlast error crashed: SIGSEGV: crashed too often\n"));
    CHECK_THAT(text, ContainsSubstring("\nthe rest of the last error:\n main+0x12 [31m\n start+0x1\n"));
}

TEST_CASE("a job that is not there was never known, or has expired") {
    job_desk desk;
    const std::string unknown = to_text(desk.ids.next());
    const auto gone = desk.ended(kind::dead_letter).front();
    CHECK(desk.out({"jobs", "discard", gone}) == "discarded\n");
    for (const std::string verb : {"show", "retry", "cancel", "discard"}) {
        CHECK(desk.refusal({"jobs", verb, unknown}) ==
              "1 error: job " + unknown +
                  ": never known to this store; is it the right --config, and the namespace that is meant?\n");
        CHECK_THAT(desk.refusal({"jobs", verb, gone}), StartsWith("1 error: job " + gone + ": expired"));
    }
    CHECK_THAT(desk.refusal({"jobs", "show", unknown, "--json"}),
               StartsWith("1 {\"id\":\"" + unknown + "\",\"absent\":\"never_known\"}\n"));
}

TEST_CASE("holdfast jobs retry starts a new generation, of one or of many") {
    job_desk desk;
    const auto ids = desk.ended(kind::dead_letter, 3);
    CHECK(desk.out({"jobs", "retry", ids[0]}) == "requeued: generation 2, due now\n");
    CHECK_THAT(desk.refusal({"jobs", "retry", ids[0]}),
               StartsWith("1 error: job " + ids[0] + " was left alone: it is pending; only dead_letter"));
    const std::string two = desk.refusal({"jobs", "retry", ids[0], ids[1]});
    CHECK_THAT(two, StartsWith("1 " + ids[0] + "  job " + ids[0] + " was left alone"));
    CHECK_THAT(two, ContainsSubstring(ids[1] + "  requeued: generation 2, due now\n"));
    CHECK_THAT(desk.out({"jobs", "retry", ids[2], "--json"}),
               ContainsSubstring("{\"id\":\"" + ids[2] + "\",\"done\":true,"));
}

TEST_CASE("changing all that match needs --yes, and says how many") {
    job_desk desk;
    desk.ended(kind::dead_letter, 520);
    desk.ended(kind::dead_letter, 2, "other");
    const std::vector<std::string> all = {"jobs", "retry", "--all", "--state", "dead_letter", "--queue", "mail"};
    CHECK(desk.refusal(all) ==
          "1 error: 520 dead_letter jobs would be requeued; nothing was done, add --yes to do it\n");
    auto for_programs = all;
    for_programs.push_back("--json");
    CHECK_THAT(desk.refusal(for_programs),
               StartsWith("1 {\"matching\":520,\"requeued\":0}\nerror: 520 dead_letter jobs"));
    auto really = all;
    really.push_back("--yes");
    CHECK(desk.out(really) == "requeued: 520 dead_letter jobs\n");
    CHECK(desk.out(really) == "requeued: 0 dead_letter jobs\n");
    CHECK(desk.out({"jobs", "cancel", "--all", "--state", "pending", "--queue", "mail", "--yes"}) ==
          "cancelled: 520 pending jobs\n");
    CHECK(desk.out({"jobs", "discard", "--all", "--state", "dead_letter", "--yes", "--json"}) == "{\"discarded\":2}\n");
    CHECK_THAT(desk.refusal({"jobs", "retry", "--all", "--state", "succeeded", "--yes"}),
               StartsWith("2 error: --all needs a --state that this can be done to: dead_letter"));
    CHECK_THAT(desk.refusal({"jobs", "retry", "--all", "--yes"}), StartsWith("2 error: --all needs a --state"));
    CHECK(desk.refusal({"jobs", "retry", "--queue", "mail"}) == "2 error: --queue needs --all\n");
    CHECK_THAT(desk.refusal({"jobs", "retry"}), StartsWith("2 error: say which jobs"));
}

TEST_CASE("a job whose unique key is taken is not requeued, and the reason is said") {
    job_desk desk;
    std::string id;
    desk.with_store([&](host& in) {
        id = desk.enqueue(in, "invoice.send", "mail", "{}", "k");
        desk.end(in, kind::dead_letter);
        desk.enqueue(in, "invoice.send", "mail", "{}", "k");
    });
    CHECK_THAT(desk.refusal({"jobs", "retry", id}),
               ContainsSubstring(
                   "another unfinished job has its unique key \"k\"; cancel that one first, or discard this one"));
}

TEST_CASE("holdfast jobs cancel answers what is the case") {
    job_desk desk;
    std::string waiting;
    std::string running;
    desk.with_store([&](host& in) {
        running = desk.enqueue(in, "invoice.send", "slow");
        desk.get(in, in.job_store().claim({.queues = {"slow"}, .limit = 1, .worker = "w"}));
        waiting = desk.enqueue(in, "invoice.send");
    });
    CHECK(desk.out({"jobs", "cancel", waiting}) == "cancelled\n");
    CHECK_THAT(desk.out({"jobs", "cancel", running}), StartsWith("asked to stop"));
    CHECK_THAT(desk.refusal({"jobs", "cancel", waiting}), ContainsSubstring("it has ended: cancelled"));
    CHECK_THAT(desk.refusal({"jobs", "discard", running}), ContainsSubstring("it is processing; cancel it first"));
}

TEST_CASE("holdfast jobs purge forgets what ended long ago, and asks first") {
    job_desk desk;
    const auto id = desk.ended(kind::dead_letter).front();
    CHECK_THAT(desk.refusal({"jobs", "purge"}), StartsWith("2 error: say what to forget"));
    CHECK_THAT(desk.refusal({"jobs", "purge", "--state", "pending", "--older-than", "1d"}),
               StartsWith("2 error: only jobs that have ended are purged"));
    CHECK_THAT(desk.refusal({"jobs", "purge", "--state", "dead_letter", "--older-than", "soon"}),
               StartsWith("2 error: --older-than is \"soon\"; expected a duration"));
    CHECK_THAT(desk.refusal({"jobs", "purge", "--state", "dead_letter", "--older-than", "0"}),
               StartsWith("1 error: 1 dead_letter job would be purged, which cannot be taken back; nothing was done"));
    CHECK_THAT(desk.refusal({"jobs", "purge", "--state", "dead_letter", "--older-than", "1h"}),
               StartsWith("1 error: 0 dead_letter jobs would be purged"));
    CHECK(desk.out({"jobs", "purge", "--state", "dead_letter", "--older-than", "1h", "--yes"}) ==
          "purged: 0 dead_letter jobs that ended more than 1h ago\n");
    CHECK(desk.out({"jobs", "purge", "--state", "dead_letter", "--older-than", "0", "--yes", "--json"}) ==
          "{\"purged\":1}\n");
    CHECK_THAT(desk.refusal({"jobs", "show", id}), ContainsSubstring("expired"));
}

TEST_CASE("holdfast jobs stats and queues list count, a queue can be paused and resumed") {
    job_desk desk;
    desk.ended(kind::dead_letter, 2);
    desk.with_store([&](host& in) { desk.enqueue(in, "x", "other"); });
    const std::string stats = squeezed(desk.out({"jobs", "stats"}));
    CHECK_THAT(stats, StartsWith("QUEUE SCHEDULED PENDING PROCESSING WAITING RETRY SUCCEEDED FAILED DEAD LETTER "));
    CHECK_THAT(stats,
               ContainsSubstring("\nmail 0 0 0 0 0 0 2 0 0\nother 0 1 0 0 0 0 0 0 0\n(all) 0 1 0 0 0 0 2 0 0\n"));
    CHECK_THAT(desk.out({"jobs", "stats", "--json"}), ContainsSubstring("\"mail\":{\"scheduled\":0,"));

    CHECK(desk.out({"queues", "pause", "mail", "other"}) == "paused: mail\npaused: other\n");
    CHECK_THAT(squeezed(desk.out({"queues", "list"})), ContainsSubstring("\nother paused 1 0 0 0\n"));
    CHECK(desk.out({"queues", "resume", "other"}) == "resumed: other\n");
    CHECK_THAT(desk.out({"queues", "list", "--json"}),
               ContainsSubstring("{\"name\":\"other\",\"paused\":false,\"pending\":1,"));
    const auto slip = desk.run({"queues", "pause", "othr"});
    CHECK(slip.code == 0);
    CHECK_THAT(slip.err, StartsWith("warning: the store knows no queue \"othr\" yet; did you mean \"other\"?"));
}

TEST_CASE("text from jobs cannot draw on the terminal or break a row") {
    job_desk desk;
    desk.with_store([&](host& in) {
        desk.enqueue(in, "a\x1b[31m\r\nb \"%s\" {} 😀 \u009b2Jc\u0085\u00a0é", "mail");
        desk.end(in, kind::dead_letter, {"t", std::string(500, 'x') + "\x1b]0;title\x07"});
    });
    const std::string text = desk.out({"jobs", "list"});
    CHECK(std::ranges::count(text, '\n') == 2);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK_THAT(text, ContainsSubstring("a [31m  b \"%s\" {} 😀  2Jc \u00a0é")); // U+009B is ESC [ in one character
    CHECK_THAT(text, ContainsSubstring("xxx…"));
    const std::string json = desk.out({"jobs", "list", "--json"});
    CHECK_THAT(json, ContainsSubstring("\\u001b[31m\\u000d\\u000ab \\\"%s\\\" {} 😀 \\u009b2Jc\\u0085\u00a0é"));

    desk.with_store([&](host& in) { desk.enqueue(in, "invoice.send", "mail\x1b[1m"); });
    CHECK(desk.run({"queues", "pause", "mail[1m"}).err.find('\x1b') == std::string::npos);
}

TEST_CASE("wrong words after jobs and queues are told with a suggestion") {
    job_desk desk;
    CHECK(desk.refusal({"jobs", "lsit"}) == "2 error: holdfast jobs has no verb \"lsit\"; did you mean \"list\"?\n");
    CHECK_THAT(desk.refusal({"jobs", "list", "--state", "dead"}), StartsWith("2 error: there is no state \"dead\""));
    CHECK_THAT(desk.refusal({"jobs", "list", "--limit", "many"}),
               StartsWith("2 error: --limit is \"many\"; expected a whole number"));
    CHECK_THAT(desk.refusal({"jobs", "show", "42"}), StartsWith("2 error: \"42\" is not the id of a job"));
    CHECK(desk.refusal({"queues", "pause"}) == "2 error: holdfast queues pause needs NAME...\n");
    CHECK_THAT(run_holdfast({"jobs"}).err, StartsWith("holdfast jobs VERB [OPTION]...\n\n  jobs list "));
    CHECK(run_holdfast({"jobs"}).code == 2);
    CHECK_THAT(run_holdfast({"queues", "--help"}).out,
               StartsWith("holdfast queues VERB [OPTION]...\n\n  queues list "));
    CHECK_THAT(run_holdfast({"jobs", "retry", "--help"}).out, StartsWith("holdfast jobs retry [ID]... [OPTION]...\n"));
}

TEST_CASE("without a store that can be seen from outside, the jobs commands say so") {
    temporary_folder folder;
    const auto refused = [&](std::string_view toml) {
        const auto done = run_holdfast({"jobs", "list", "--config", folder.write("desk.toml", toml).string()});
        CHECK(done.code == 1);
        return done.err;
    };
    CHECK_THAT(refused(""), ContainsSubstring("[store]"));
    CHECK_THAT(refused("[store]\nplugin = 'memory'\n"),
               ContainsSubstring("the memory store keeps its jobs inside its own process"));
}
