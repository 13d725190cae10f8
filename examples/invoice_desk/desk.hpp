// The process that takes the invoices in and watches.
#pragma once

#include <filesystem>

struct desk_options {
    std::filesystem::path config; // empty: SQLite in a temporary folder
    int mails = 400;
};

// 0 when every mail was delivered once or dead-lettered with a reason, although a worker was killed.
int run_desk(const desk_options& options);
