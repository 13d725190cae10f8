#include "symbol_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <cxxabi.h>
#include <elf.h>

namespace holdfast::detail {

namespace {

constexpr std::uint64_t largest = 1u << 30; // of a table that is read

template <class T>
std::vector<T> read_table(std::ifstream& from, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes > largest) return {};
    std::vector<T> table(bytes / sizeof(T));
    from.seekg(static_cast<std::streamoff>(offset));
    from.read(reinterpret_cast<char*>(table.data()), static_cast<std::streamsize>(table.size() * sizeof(T)));
    if (!from) table.clear();
    return table;
}

std::string in_hex(std::uint64_t number) {
    std::string digits;
    do digits.insert(digits.begin(), "0123456789abcdef"[number & 15]);
    while ((number >>= 4) != 0);
    return "0x" + digits;
}

bool holds(const Elf64_Sym& symbol, std::uint64_t address) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= address &&
           address < symbol.st_value + symbol.st_size;
}

} // namespace

std::string demangled(const std::string& name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string readable = status == 0 && text != nullptr ? text : name;
    std::free(text);
    return readable;
}

std::string symbol_at(const std::filesystem::path& file, std::uint64_t address) {
    std::ifstream from(file, std::ios::binary);
    Elf64_Ehdr header{};
    from.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!from || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return {};
    const auto sections = read_table<Elf64_Shdr>(from, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& each : sections) {
        if (each.sh_type != SHT_SYMTAB || each.sh_link >= sections.size()) continue;
        const auto symbols = read_table<Elf64_Sym>(from, each.sh_offset, each.sh_size);
        const Elf64_Shdr& texts = sections[each.sh_link];
        auto names = read_table<char>(from, texts.sh_offset, texts.sh_size);
        names.push_back('\0');
        const auto found = std::ranges::find_if(symbols, [&](const Elf64_Sym& s) { return holds(s, address); });
        if (found == symbols.end() || found->st_name >= names.size()) return {};
        return demangled(names.data() + found->st_name) + "+" + in_hex(address - found->st_value);
    }
    return {};
}

} // namespace holdfast::detail
