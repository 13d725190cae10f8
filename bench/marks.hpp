// How a run beside other systems is told from outside: what lies between @BEGIN and @END was timed, @VAL says what came of
// it. Where MEASURED is set, whoever reads these lines answers the first two with a line.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench {

class marks {
public:
    explicit marks(bool on) : on_(on) {}

    void begin() const { mark("@BEGIN"); }
    void end() const { mark("@END"); }
    void value(const std::string& name, double value, const char* unit, int of) const {
        if (!on_) return;
        std::printf("@VAL %s|%g|%s|%d\n", name.c_str(), value, unit, of);
        std::fflush(stdout);
    }

private:
    void mark(const char* text) const {
        if (!on_) return;
        std::puts(text);
        std::fflush(stdout);
        if (std::getenv("MEASURED") == nullptr) return;
        for (int c = std::getchar(); c != '\n' && c != EOF;) c = std::getchar();
    }
    bool on_;
};

} // namespace bench
