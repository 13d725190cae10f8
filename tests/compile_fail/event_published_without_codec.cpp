// expect: an event that is published needs a codec
#include "event_support.hpp"

using namespace holdfast;

struct bad {
    static constexpr event_options options{.name = "bad"};
};

task<result<identifier>> publish(events& through) {
    return through.publish(bad{});
}
