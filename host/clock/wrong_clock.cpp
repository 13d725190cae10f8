// Loaded before a program, this makes its clock wrong by HOLDFAST_CLOCK_SHIFT seconds; by 0, it jumps an hour ahead and
// back all the time. What measures lengths of time is right as ever.
#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t which, timespec* into) noexcept {
    const long answer = ::syscall(SYS_clock_gettime, which, into);
    if (answer != 0 || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return static_cast<int>(answer);
    const char* text = std::getenv("HOLDFAST_CLOCK_SHIFT");
    const long shift = text == nullptr ? 0 : std::atol(text);
    into->tv_sec += shift != 0 ? shift : into->tv_sec % 2 * 3600;
    return 0;
}
