#include "mail_worker.hpp"

#include <holdfast/host.hpp>

#include "invoice.hpp"
#include "mail_server.hpp"

namespace {

// [handle]
// Blocking code, so it runs on the blocking pool. The key is the same at every attempt: the server can tell.
void deliver(const send_invoice& mail, holdfast::job_context& context, std::uint16_t port) {
    const std::string answer = ask_mail_server(port, context.idempotency_key(), mail.to);
    if (answer.starts_with("250")) return;
    if (answer.starts_with("550")) throw bad_address(answer);
    throw mail_server_busy(answer.empty() ? "it hung up" : answer);
}
// [/handle]

} // namespace

int run_mail_worker(const std::filesystem::path& config, std::uint16_t mail_port) {
    // [main]
    auto host = holdfast::host::from_file(config);
    host.add(sending);
    host.add<send_invoice>(
        [mail_port](const send_invoice& mail, holdfast::job_context& context) { deliver(mail, context, mail_port); });
    return host.run();
    // [/main]
}
