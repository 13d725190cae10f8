// A job whose handler runs in a process of its own: a picture that crashes the library that reads it costs one attempt,
// not the worker and what else it was doing.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <holdfast/host.hpp>
#include <holdfast/json.hpp>
#include <holdfast/sync_wait.hpp>

using namespace std::chrono_literals;

// A library with a bug.
struct picture {
    const char* pixels;
    int size;
};
picture decode(const std::string& file) {
    return {file == "broken.png" ? nullptr : "############", 12};
}
[[gnu::noinline]] char first_pixel(const picture& of) {
    return *static_cast<const volatile char*>(of.pixels);
}

// [job]
struct make_thumbnail {
    static constexpr holdfast::job_options options{
        .name = "thumbnail.make", .attempts = 1, .timeout = 10s, .hard_deadline = 30s, .isolate = true};
    std::string file;
};
BOOST_DESCRIBE_STRUCT(make_thumbnail, (), (file))

void handle(const make_thumbnail& job, holdfast::job_context& context) {
    const picture whole = decode(job.file);
    if (first_pixel(whole) == '#') context.output(std::to_string(whole.size) + " pixels");
}
// [/job]

namespace {

holdfast::job_view run_one(holdfast::host& host, const std::string& file) {
    const auto queued = sync_wait(host.runtime(), host.jobs().enqueue(make_thumbnail{file}));
    if (!queued) throw holdfast::failed(queued.error());
    for (;; std::this_thread::sleep_for(5ms)) {
        const auto found = sync_wait(host.runtime(), host.jobs().get(queued->id));
        if (!found) throw holdfast::failed(found.error());
        const auto& job = std::get<holdfast::job_view>(*found);
        if (is_final(job.state)) return job;
    }
}

void run() {
    auto host = holdfast::host::from_text("[store]\nplugin = \"memory\"\n[log]\nlevel = \"error\"\n");
    host.add<make_thumbnail>(handle);
    host.start(); // while the program has one thread: from it, the processes for such jobs are made

    const auto good = run_one(host, "holiday.png");
    std::cout << "holiday.png: " << to_text(good.state) << " " << good.output << "\n";
    const auto bad = run_one(host, "broken.png");
    std::cout << "broken.png: " << to_text(bad.state) << " " << bad.last_error.type << "\n"
              << bad.last_error.message << "\n";
}

} // namespace

int main() {
    try {
        run();
        return 0;
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
