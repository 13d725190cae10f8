// What the event cases share: a codec for every struct that derives from `coded`.
#pragma once

#include "job_support.hpp"

#include <holdfast/event_consumer.hpp>
#include <holdfast/events.hpp>
