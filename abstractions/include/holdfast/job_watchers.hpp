// For store authors: who watches which queues, as job_store::watch() asks for it.
#pragma once

#include <holdfast/job_store.hpp>
#include <holdfast/watchers.hpp>

namespace holdfast {

class job_watchers : public watchers<job_watch> {
public:
    // Every queue that somebody watches, each once.
    std::vector<std::string> queues() const { return names(); }
};

} // namespace holdfast
