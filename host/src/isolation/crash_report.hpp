// What a process leaves behind when a signal ends it.
#pragma once

#include <string>

namespace holdfast::detail {

// From here on a signal that ends the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT), or an exception that nobody
// catches, writes what happened and the stack to that file first: some kilobytes. For the life of the process.
void report_crashes_to(int file);

// "SIGSEGV", "exit code 3": how a process ended, by its wait status.
std::string ending_in_words(int wait_status);

// The report for people: names of functions as they are written in code.
std::string readable_stack(const std::string& report);

} // namespace holdfast::detail
