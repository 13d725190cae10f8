// The tables. Times are microseconds since 1970 on the store's clock, keys are BLOBs, states are the numbers of job_state.
// A job `expires` when it says itself how long it is kept; the others go by when they ended: one index less for most.
#include "sql.hpp"

namespace holdfast::sqlite {

namespace {

constexpr std::string_view version_1 = R"sql(
INSERT INTO {meta}(key, value) VALUES('token', 0);

CREATE TABLE {jobs}(
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    due INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL DEFAULT 0,
    max_crashes INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    may_restart INTEGER NOT NULL,
    started INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    waits INTEGER NOT NULL,
    cancelled_by_parent INTEGER NOT NULL,
    has_children INTEGER NOT NULL DEFAULT 0,
    runs INTEGER NOT NULL DEFAULT 0,
    large INTEGER NOT NULL,
    keep INTEGER,
    created INTEGER NOT NULL,
    ended INTEGER,
    expires INTEGER,
    leased INTEGER,
    claimed INTEGER,
    worker TEXT,
    unique_key BLOB,
    parent BLOB,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    headers BLOB,
    percent INTEGER NOT NULL DEFAULT 0,
    note TEXT,
    error_type TEXT,
    error_message TEXT,
    body BLOB
);
CREATE UNIQUE INDEX {jobs_id} ON {jobs}(id);
CREATE INDEX {jobs_open} ON {jobs}(queue, priority DESC, due, id, state) WHERE state IN (0,1,3) AND waits=0;
CREATE INDEX {jobs_leased} ON {jobs}(leased) WHERE state=2;
CREATE UNIQUE INDEX {jobs_key} ON {jobs}(type, unique_key) WHERE unique_key IS NOT NULL AND state<4;
CREATE INDEX {jobs_parent} ON {jobs}(parent) WHERE parent IS NOT NULL;
CREATE INDEX {jobs_final} ON {jobs}(state, id, queue) WHERE state>=4;
CREATE INDEX {jobs_ended} ON {jobs}(state, ended) WHERE state>=4 AND expires IS NULL;
CREATE INDEX {jobs_kept} ON {jobs}(ended) WHERE expires IS NOT NULL;
CREATE INDEX {jobs_expires} ON {jobs}(expires) WHERE expires IS NOT NULL;

CREATE TABLE {job_bodies}(job INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE {job_outputs}(job INTEGER PRIMARY KEY, output BLOB NOT NULL);
CREATE TABLE {attempts}(
    job INTEGER NOT NULL,
    token INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error_type TEXT,
    error_message TEXT,
    PRIMARY KEY(job, token)
) WITHOUT ROWID;
CREATE TABLE {tombstones}(id BLOB PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX {tombstones_expires} ON {tombstones}(expires);
CREATE TABLE {queues}(name TEXT PRIMARY KEY, paused INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE {claims}(key BLOB PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX {claims_expires} ON {claims}(expires);
CREATE TABLE {idempotency}(
    key BLOB NOT NULL UNIQUE,
    token INTEGER NOT NULL,
    done INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    leased INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    type TEXT,
    version INTEGER,
    content_type TEXT,
    body BLOB
);
CREATE INDEX {idempotency_expires} ON {idempotency}(expires);

CREATE TABLE {locks}(resource BLOB PRIMARY KEY, token INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX {locks_until} ON {locks}(until);

CREATE TABLE {outbox}(
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    aside INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    key BLOB NOT NULL,
    topic TEXT NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    headers BLOB,
    relay TEXT,
    last_error TEXT,
    large INTEGER NOT NULL,
    body BLOB
);
CREATE INDEX {outbox_heads} ON {outbox}(due, position) WHERE head=1 AND aside=0;
CREATE INDEX {outbox_line} ON {outbox}(key, position) WHERE aside=0;
CREATE INDEX {outbox_aside} ON {outbox}(position) WHERE aside=1;
CREATE TABLE {message_bodies}(message INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE {inbox}(
    consumer BLOB NOT NULL,
    message BLOB NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY(consumer, message)
) WITHOUT ROWID;
CREATE INDEX {inbox_expires} ON {inbox}(expires);
)sql";

// An IN in the condition of an index has SQLite fill a table of its own for every row that it writes.
constexpr std::string_view version_2 = R"sql(
DROP INDEX {jobs_open};
CREATE INDEX {jobs_open} ON {jobs}(queue, priority DESC, due, id, state) WHERE state<4 AND state<>2 AND waits=0;
)sql";

constexpr std::string_view tables[] = {"jobs",           "job_bodies", "job_outputs", "attempts", "tombstones",
                                       "queues",         "claims",     "idempotency", "locks",    "outbox",
                                       "message_bodies", "inbox",      "meta"};

} // namespace

std::vector<std::string> migrations(std::string_view prefix) {
    return {expand(prefix, version_1), expand(prefix, version_2)};
}

std::string drop_everything(std::string_view prefix) {
    std::string text;
    for (const std::string_view each : tables)
        text += "DROP TABLE IF EXISTS " + expand(prefix, "{" + std::string(each) + "}") + ";\n";
    return text;
}

} // namespace holdfast::sqlite
