// What a plugin file exports: one C symbol, `holdfast_plugin`, a descriptor of plain data that the host can read
// without running any code of the plugin. docs/writing-a-backend.md walks through one.
//
//   HOLDFAST_RUNTIME_PLUGIN("mine", "1.0.0", "what it is", [](holdfast::plugin_context& c) {
//       return std::make_unique<my_runtime>(c.settings().integer("threads", 2, 1, 64));
//   })
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <version>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/settings.hpp>

namespace holdfast {

inline constexpr std::uint32_t plugin_magic = 0x44'4C'4F'48; // "HOLD"

// Raised by every change to an interface in abstractions that a plugin implements or is given. docs/abi.md lists what
// counts.
inline constexpr std::uint32_t plugin_abi = 1;

enum class plugin_kind : std::uint32_t { runtime = 1, store = 2, events = 3, application = 4 };

constexpr std::string_view to_text(plugin_kind k) noexcept {
    switch (k) {
    case plugin_kind::runtime: return "runtime";
    case plugin_kind::store: return "store";
    case plugin_kind::events: return "events";
    case plugin_kind::application: return "application";
    }
    return "unknown kind";
}

// The compiler and the standard library that this translation unit is built with. Host and plugin must agree.
#define HOLDFAST_DETAIL_STR2(x) #x
#define HOLDFAST_DETAIL_STR(x) HOLDFAST_DETAIL_STR2(x)
#if defined(__clang__)
#define HOLDFAST_DETAIL_COMPILER "clang " HOLDFAST_DETAIL_STR(__clang_major__)
#else
#define HOLDFAST_DETAIL_COMPILER "gcc " HOLDFAST_DETAIL_STR(__GNUC__)
#endif
#if defined(_GLIBCXX_RELEASE)
#define HOLDFAST_DETAIL_LIBRARY "libstdc++ " HOLDFAST_DETAIL_STR(_GLIBCXX_RELEASE)
#elif defined(_LIBCPP_VERSION)
#define HOLDFAST_DETAIL_LIBRARY "libc++ " HOLDFAST_DETAIL_STR(_LIBCPP_VERSION)
#else
#define HOLDFAST_DETAIL_LIBRARY "unknown library"
#endif
#define HOLDFAST_TOOLCHAIN HOLDFAST_DETAIL_COMPILER ", " HOLDFAST_DETAIL_LIBRARY

// What the host gives a plugin when it creates it. Lives as long as what was created.
class plugin_context {
public:
    virtual holdfast::settings& settings() noexcept = 0;
    virtual logger& log() noexcept = 0;
    virtual holdfast::runtime* runtime() noexcept = 0; // null for a runtime plugin

protected:
    ~plugin_context() = default;
};

// Why create failed, copied over the boundary.
struct plugin_failure {
    char message[512] = {};
    void set(std::string_view text) noexcept {
        const std::size_t n = text.size() < sizeof(message) - 1 ? text.size() : sizeof(message) - 1;
        std::memcpy(message, text.data(), n);
        message[n] = '\0';
    }
};

struct plugin_descriptor {
    std::uint32_t magic;
    std::uint32_t size; // of this structure, as the plugin knows it
    std::uint32_t abi;
    std::uint32_t kind;
    const char* toolchain;
    const char* name;    // what a configuration calls it
    const char* version; // the plugin's own
    const char* summary; // one line for people
    // The interface of its kind (runtime*, application*, …) as void*, or null with the reason in `why`.
    void* (*create)(plugin_context& context, plugin_failure& why) noexcept;
    void (*destroy)(void* created) noexcept;
};

namespace detail {

template <class Interface, auto Factory>
void* create_plugin(plugin_context& context, plugin_failure& why) noexcept {
    try {
        std::unique_ptr<Interface> made = Factory(context);
        if (made == nullptr) why.set("its factory returned nothing");
        return made.release();
    } catch (const std::exception& e) {
        why.set(e.what());
    } catch (...) {
        why.set("it threw something that is not a std::exception");
    }
    return nullptr;
}

template <class Interface>
void destroy_plugin(void* created) noexcept {
    delete static_cast<Interface*>(created);
}

} // namespace detail
} // namespace holdfast

#define HOLDFAST_DETAIL_PLUGIN(interface_, kind_, name_, version_, summary_, ...)                                      \
    namespace {                                                                                                        \
    constexpr auto holdfast_plugin_factory = __VA_ARGS__;                                                              \
    }                                                                                                                  \
    extern "C" [[gnu::visibility("default")]] const holdfast::plugin_descriptor holdfast_plugin;                       \
    const holdfast::plugin_descriptor holdfast_plugin = {                                                              \
        holdfast::plugin_magic,                                                                                        \
        sizeof(holdfast::plugin_descriptor),                                                                           \
        holdfast::plugin_abi,                                                                                          \
        static_cast<std::uint32_t>(holdfast::plugin_kind::kind_),                                                      \
        HOLDFAST_TOOLCHAIN,                                                                                            \
        name_,                                                                                                         \
        version_,                                                                                                      \
        summary_,                                                                                                      \
        &holdfast::detail::create_plugin<interface_, holdfast_plugin_factory>,                                         \
        &holdfast::detail::destroy_plugin<interface_>,                                                                 \
    };

// The last argument is a captureless function of plugin_context& that gives a std::unique_ptr; it may throw.
// Include the header of the interface as well: runtime.hpp, store.hpp, event_transport.hpp, application.hpp.
#define HOLDFAST_RUNTIME_PLUGIN(name, version, summary, ...)                                                           \
    HOLDFAST_DETAIL_PLUGIN(holdfast::runtime, runtime, name, version, summary, __VA_ARGS__)
#define HOLDFAST_STORE_PLUGIN(name, version, summary, ...)                                                             \
    HOLDFAST_DETAIL_PLUGIN(holdfast::store, store, name, version, summary, __VA_ARGS__)
#define HOLDFAST_EVENTS_PLUGIN(name, version, summary, ...)                                                            \
    HOLDFAST_DETAIL_PLUGIN(holdfast::event_transport, events, name, version, summary, __VA_ARGS__)
#define HOLDFAST_APPLICATION_PLUGIN(name, version, summary, ...)                                                       \
    HOLDFAST_DETAIL_PLUGIN(holdfast::application, application, name, version, summary, __VA_ARGS__)
