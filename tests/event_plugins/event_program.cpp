// A process that receives, for tests that start several and kill some:
//
//   event_program hold|pump <plugin> <file> key=value…
//
// hold: receives what there is under a short lease, says so in the file, and does nothing more. pump: receives and
// acknowledges until it is killed, and writes what it got into the file, a line each, before it acknowledges.
#include <fstream>

#include "event_plugins/support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const std::string verb = arguments[1];
    test::event_desk d(arguments[2], test::settings_from(count, arguments, 4));
    std::ofstream file(arguments[3], std::ios::app);
    while (verb == "hold") {
        const auto held = d.receive(100, 500ms);
        for (const delivery& each : held) file << each.message.what.body << std::endl;
        if (held.empty()) std::this_thread::sleep_for(10ms);
        else std::this_thread::sleep_for(1h);
    }
    for (;;) {
        const auto got = d.receive(7, 2s);
        std::vector<delivery_settlement> done;
        for (const delivery& each : got) {
            file << each.message.key + " " + each.message.what.body + "\n" << std::flush;
            done.push_back(d.how(each, test::kind::acknowledge));
        }
        if (done.empty()) std::this_thread::sleep_for(5ms);
        else d.await(d.kept->settle(done));
    }
}
