// Names of functions in a program or library, from its symbol table, which is there unless it was stripped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace holdfast::detail {

// "desk::send(int)+0x1a" for an address relative to where the file is loaded; empty when it is not known. Reads the file.
std::string symbol_at(const std::filesystem::path& file, std::uint64_t address);

// As people write it in code.
std::string demangled(const std::string& name);

} // namespace holdfast::detail
