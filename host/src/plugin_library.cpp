#include <holdfast/plugin_library.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>

#include <holdfast/version.hpp>

#include "elf_check.hpp"
#include "file_safety.hpp"

namespace holdfast {

namespace {

namespace fs = std::filesystem;

constexpr const char* symbol = "holdfast_plugin";

std::unexpected<error> refuse(const fs::path& file, const std::string& why) {
    return fail(errc::plugin, file.string() + ": " + why);
}

std::string hex(std::uint32_t number) {
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08x", number);
    return text;
}

std::string build_of(std::uint32_t abi, const char* toolchain) {
    return "ABI " + std::to_string(abi) + " (" + (toolchain == nullptr ? "unknown toolchain" : toolchain) + ")";
}

std::string rebuild() {
    return "rebuild it against holdfast " + std::to_string(HOLDFAST_VERSION_MAJOR) + "." +
           std::to_string(HOLDFAST_VERSION_MINOR);
}

// Never given back: code and constants of a plugin may be in use until the very end.
void keep(boost::dll::shared_library library) {
    static std::mutex mutex;
    static auto* const kept = new std::vector<boost::dll::shared_library>;
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(library));
}

// What the loader says, without the path that it begins with.
std::string loader_message(const fs::path& file) {
    const char* said = ::dlerror();
    std::string text = said == nullptr ? "the system gives no reason" : said;
    const std::string prefix = file.string() + ": ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

result<const plugin_descriptor*> open(const fs::path& file) {
    boost::dll::shared_library library;
    std::error_code problem;
    const fs::path absolute = fs::absolute(file);
    library.load(absolute, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local, problem);
    if (problem) return refuse(file, "cannot be loaded: " + loader_message(absolute));
    const plugin_descriptor* found = library.has(symbol) ? &library.get<const plugin_descriptor>(symbol) : nullptr;
    keep(std::move(library));
    if (found == nullptr) return refuse(file, std::string("not a Holdfast plugin: it does not export ") + symbol);
    return found;
}

// The fields up to `name` are where they are in every ABI; what follows is looked at only when the ABI is ours.
result<void> check(const fs::path& file, const plugin_descriptor& found) {
    constexpr std::uint32_t fixed_part = offsetof(plugin_descriptor, name);
    if (found.magic != plugin_magic)
        return refuse(file, std::string("not a Holdfast plugin: ") + symbol + " begins with " + hex(found.magic) +
                                ", expected " + hex(plugin_magic));
    const auto too_small = [&] {
        return refuse(file, "its descriptor has " + std::to_string(found.size) + " bytes, this host needs " +
                                std::to_string(sizeof(plugin_descriptor)) + "; " + rebuild());
    };
    if (found.size < fixed_part) return too_small();
    if (found.abi != plugin_abi || found.toolchain == nullptr || std::strcmp(found.toolchain, HOLDFAST_TOOLCHAIN) != 0)
        return refuse(file, "built for " + build_of(found.abi, found.toolchain) + ", this host needs " +
                                build_of(plugin_abi, HOLDFAST_TOOLCHAIN) + "; " + rebuild());
    if (found.size < sizeof(plugin_descriptor)) return too_small();
    if (found.kind < static_cast<std::uint32_t>(plugin_kind::runtime) ||
        found.kind > static_cast<std::uint32_t>(plugin_kind::application))
        return refuse(file, "a plugin of kind " + std::to_string(found.kind) + ", which this host does not know");
    const bool whole = found.name != nullptr && *found.name != '\0' && found.version != nullptr &&
                       found.summary != nullptr && found.create != nullptr && found.destroy != nullptr;
    if (!whole) return refuse(file, "its descriptor leaves out the name, version, summary, create or destroy");
    return {};
}

template <class Interface>
result<plugin_instance<Interface>> create(const loaded_plugin& from, plugin_kind wanted, settings with, logger& log,
                                          runtime* on) {
    if (from.kind() != wanted)
        return refuse(from.file(), "found the " + std::string(to_text(from.kind())) + " plugin \"" +
                                       std::string(from.name()) + "\", expected a plugin of kind " +
                                       std::string(to_text(wanted)));
    const plugin_descriptor& descriptor = from.descriptor();
    auto context = std::make_unique<detail::given_context>(std::move(with), log, on);
    settings& given = context->settings();
    plugin_failure why;
    void* made = descriptor.create(*context, why);
    why.message[sizeof(why.message) - 1] = '\0';
    if (made == nullptr) {
        const std::string_view reason = why.message;
        if (const auto& refused = given.refusal(); refused && refused->message.starts_with(reason))
            return std::unexpected(*refused);
        return refuse(from.file(), "could not start: " + std::string(reason.empty() ? "it gives no reason" : reason));
    }
    plugin_instance<Interface> instance(std::move(context), static_cast<Interface*>(made), descriptor.destroy);
    if (auto unknown = given.first_unknown()) return std::unexpected(std::move(*unknown));
    return instance;
}

} // namespace

result<loaded_plugin> load_plugin(const fs::path& file) {
    std::error_code problem;
    const auto status = fs::status(file, problem);
    if (status.type() == fs::file_type::not_found) return refuse(file, "there is no such file");
    if (problem) return refuse(file, "cannot be looked at: " + problem.message());
    if (!fs::is_regular_file(status)) return refuse(file, "not a file");
    if (auto safe = detail::check_safe_file(file); !safe) return std::unexpected(std::move(safe.error()));
    if (auto whole = detail::check_elf(file); !whole) return refuse(file, whole.error().message);

    auto found = open(file);
    if (!found) return std::unexpected(std::move(found.error()));
    if (auto fits = check(file, **found); !fits) return std::unexpected(std::move(fits.error()));
    return loaded_plugin(file, **found);
}

result<plugin_instance<runtime>> create_runtime(const loaded_plugin& from, settings with, logger& log) {
    return create<runtime>(from, plugin_kind::runtime, std::move(with), log, nullptr);
}

result<plugin_instance<store>> create_store(const loaded_plugin& from, settings with, logger& log, runtime& on) {
    return create<store>(from, plugin_kind::store, std::move(with), log, &on);
}

result<plugin_instance<event_transport>> create_events(const loaded_plugin& from, settings with, logger& log,
                                                       runtime& on) {
    return create<event_transport>(from, plugin_kind::events, std::move(with), log, &on);
}

result<plugin_instance<application>> create_application(const loaded_plugin& from, settings with, logger& log,
                                                        runtime& on) {
    return create<application>(from, plugin_kind::application, std::move(with), log, &on);
}

} // namespace holdfast
