// Jobs: continuations, which wait for their parent, and requeueing, which begins anew.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

identifier add_child(const job_user& user, identifier parent, due when = {}) {
    new_job j = user.make("children");
    j.parent = parent;
    j.when = when;
    return user.add(j);
}

void settle_next(const job_user& user, identifier expected, kind how, std::string queue = "default") {
    const claimed_job mine = user.claim_one(long_lease, std::move(queue));
    check_equal(mine.id, expected, "the job that was claimed");
    user.settle({.held = &mine.lease, .how = how, .when = due::now(), .error = {}, .output = {}});
}

void waits_for_success(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    const identifier child = add_child(user, parent);
    const identifier later = add_child(user, parent, due::after(1h));
    check_equal(user.state_of(child), job_state::scheduled, "state of a child that waits");
    check_equal(user.view(child).parent, std::optional(parent), "parent");
    check_equal(user.claim_ids(9, {"children"}).size(), std::size_t{0}, "children to claim");
    settle_next(user, parent, kind::retry);
    check_equal(user.claim_ids(9, {"children"}).size(), std::size_t{0}, "children to claim while the parent retries");
    settle_next(user, parent, kind::succeed);
    check_equal(user.state_of(child), job_state::pending, "state of the child");
    check_equal(user.state_of(later), job_state::scheduled, "state of the child with a due time of its own");
    check_equal(user.claim_ids(9, {"children"}), std::vector{child}, "children to claim");
}

void parent_in_the_same_batch(store_lab& in) {
    const job_user user(in);
    const new_job parent = user.make();
    new_job child = user.make("children");
    child.parent = parent.id;
    in.ok(user.jobs().enqueue({parent, child}), "enqueue");
    check_equal(user.claim_ids(9, {"children"}).size(), std::size_t{0}, "children to claim");
    settle_next(user, parent.id, kind::succeed);
    check_equal(user.claim_ids(9, {"children"}), std::vector{child.id}, "children to claim");
}

void parent_that_is_not_kept(store_lab& in) {
    const job_user user(in);
    new_job parent = user.make();
    parent.keep_for = 0s;
    user.add(parent);
    const identifier child = add_child(user, parent.id);
    settle_next(user, parent.id, kind::succeed);
    check_equal(user.claim_ids(9, {"children"}), std::vector{child}, "children to claim");
    const identifier late = add_child(user, parent.id);
    check_equal(user.claim_ids(9, {"children"}), std::vector{late}, "a parent that is not known holds nothing up");
}

void parent_had_ended(store_lab& in) {
    const job_user user(in);
    const identifier good = user.ended_as(kind::succeed);
    const identifier bad = user.ended_as(kind::dead_letter);
    const identifier runs = add_child(user, good);
    const identifier never = add_child(user, bad);
    check_equal(user.state_of(never), job_state::cancelled, "state of the child of a dead parent");
    check_equal(user.claim_ids(9, {"children"}), std::vector{runs}, "children to claim");
}

void a_dead_parent_cancels(store_lab& in) {
    const job_user user(in);
    for (const kind how : {kind::dead_letter, kind::fail, kind::cancel, kind::indeterminate}) {
        const identifier parent = user.add();
        const identifier child = add_child(user, parent);
        settle_next(user, parent, how);
        check_equal(user.state_of(child), job_state::cancelled, "state of the child");
        check(user.view(child).ended.has_value(), "the child has ended");
    }
    const identifier parent = user.add();
    const identifier child = add_child(user, parent);
    user.cancel(parent);
    check_equal(user.state_of(child), job_state::cancelled, "state of the child of a cancelled parent");
}

void a_crashed_parent_cancels(store_lab& in) {
    const job_user user(in);
    new_job parent = user.make();
    parent.may_restart = false;
    user.add(parent);
    const identifier child = add_child(user, parent.id);
    const claimed_job mine = user.claim_one(short_lease);
    user.started(mine.lease);
    in.pass(short_lease);
    check_equal(user.recover().failed, 1, "failed");
    check_equal(user.state_of(child), job_state::cancelled, "state of the child");
}

void down_the_line(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    const identifier child = add_child(user, parent);
    const identifier grandchild = add_child(user, child);
    settle_next(user, parent, kind::dead_letter);
    check_equal(user.state_of(child), job_state::cancelled, "state of the child");
    check_equal(user.state_of(grandchild), job_state::cancelled, "state of the grandchild");
    check_equal(user.requeue({parent}), 1, "requeued");
    check_equal(user.state_of(child), job_state::scheduled, "state of the child, armed again");
    check_equal(user.state_of(grandchild), job_state::scheduled, "state of the grandchild, armed again");
    check(!user.view(child).ended, "the child has not ended");
    settle_next(user, parent, kind::succeed);
    settle_next(user, child, kind::succeed, "children");
    settle_next(user, grandchild, kind::succeed, "children");
}

void what_a_user_cancelled_stays_so(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    const identifier child = add_child(user, parent);
    check_equal(user.cancel(child), cancel_answer::cancelled, "cancel of a child that waits");
    settle_next(user, parent, kind::dead_letter);
    user.requeue({parent});
    check_equal(user.state_of(child), job_state::cancelled, "state of the child");
    settle_next(user, parent, kind::succeed);
    check_equal(user.state_of(child), job_state::cancelled, "state of the child");
}

void a_child_alone_can_be_requeued(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    const identifier child = add_child(user, parent);
    settle_next(user, parent, kind::dead_letter);
    check_equal(user.requeue({child}), 1, "requeued");
    check_equal(user.claim_ids(9, {"children"}), std::vector{child}, "children to claim");
}

void many_children(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    for (int i = 0; i < 50; ++i) add_child(user, parent);
    settle_next(user, parent, kind::succeed);
    check_equal(user.claim_ids(100, {"children"}).size(), std::size_t{50}, "children to claim");
}

} // namespace

store_case_list job_family_cases() {
    return {
        {"a child waits until its parent has succeeded", &waits_for_success},
        {"a parent may be in the same batch", &parent_in_the_same_batch},
        {"a parent that is not kept still lets its child go", &parent_that_is_not_kept},
        {"a parent that had ended decides at once", &parent_had_ended},
        {"a parent that ended badly cancels its children", &a_dead_parent_cancels},
        {"a parent that crashed for good cancels its children", &a_crashed_parent_cancels},
        {"grandchildren share the fate, and are armed again with the first", &down_the_line},
        {"a child that its user cancelled is not armed again", &what_a_user_cancelled_stays_so},
        {"a child can be requeued without its parent", &a_child_alone_can_be_requeued},
        {"a parent lets all its children go", &many_children},
    };
}

} // namespace holdfast::conformance
