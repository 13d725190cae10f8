#include "elf_check.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include <elf.h>
#include <link.h>

namespace holdfast::detail {

namespace {

using header = ElfW(Ehdr);
using program_header = ElfW(Phdr);

#if defined(__x86_64__)
constexpr auto this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr auto this_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr auto this_machine = EM_RISCV;
#else
constexpr auto this_machine = EM_NONE; // not known: not compared
#endif

std::unexpected<error> refuse(std::string why) {
    return fail(errc::plugin, std::move(why));
}

std::unexpected<error> truncated(std::uintmax_t size, std::uintmax_t expected) {
    return refuse("truncated: its headers tell of " + std::to_string(expected) + " bytes, the file has " +
                  std::to_string(size));
}

template <class T>
bool read_at(std::ifstream& file, std::uintmax_t offset, T& into) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    char bytes[sizeof(T)];
    if (!file.read(bytes, sizeof(T))) return false;
    std::memcpy(&into, bytes, sizeof(T));
    return true;
}

} // namespace

result<void> check_elf(const std::filesystem::path& path) {
    std::error_code problem;
    const std::uintmax_t size = std::filesystem::file_size(path, problem);
    std::ifstream file(path, std::ios::binary);
    if (problem || !file) return refuse("cannot be read");
    if (size == 0) return refuse("not a shared library: the file is empty");

    char magic[SELFMAG] = {};
    if (!read_at(file, 0, magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0) return refuse("not a shared library");
    header h{};
    if (!read_at(file, 0, h)) return truncated(size, sizeof(h));

    constexpr auto this_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (h.e_ident[EI_CLASS] != this_class || (this_machine != EM_NONE && h.e_machine != this_machine))
        return refuse("a library for another kind of machine");
    if (h.e_type != ET_DYN || h.e_phentsize != sizeof(program_header)) return refuse("not a shared library");

    std::uintmax_t expected = h.e_phoff + std::uintmax_t{h.e_phnum} * sizeof(program_header);
    if (h.e_shoff != 0) // these headers come last, so they tell of anything that is missing
        expected = std::max<std::uintmax_t>(expected, h.e_shoff + std::uintmax_t{h.e_shnum} * h.e_shentsize);
    for (std::uintmax_t i = 0; i < h.e_phnum && expected <= size; ++i) {
        program_header segment{};
        if (!read_at(file, h.e_phoff + i * sizeof(segment), segment)) break;
        if (segment.p_type == PT_LOAD)
            expected = std::max<std::uintmax_t>(expected, segment.p_offset + segment.p_filesz);
    }
    if (expected > size) return truncated(size, expected);
    return {};
}

} // namespace holdfast::detail
