#include "flux/server/local_admin.h"

#include <mutex>
#include <optional>
#include <utility>

namespace flux {
namespace {

// An outcome that comes while the work runs, or later on another thread.
template <typename Outcome>
struct Pending {
  std::mutex mutex;
  std::optional<Outcome> outcome;
  bool told = false;  // the work has ended, and it was not there yet
  std::function<void(Outcome)> done;
};

// Starts `work`, which calls its argument once, elsewhere; gives what it says to `done`.
template <typename Outcome, typename Work>
void start_elsewhere(Offload* offload, std::function<void(Outcome)> done, Work work) {
  auto pending = std::make_shared<Pending<Outcome>>();
  pending->done = std::move(done);
  const auto arrive = [offload, pending](Outcome outcome) {
    {
      const std::lock_guard lock(pending->mutex);
      pending->outcome.emplace(std::move(outcome));
      if (!pending->told) return;
    }
    offload->run([] {}, [pending] { pending->done(std::move(*pending->outcome)); });
  };
  offload->run([work = std::move(work), arrive] { work(arrive); },
               [pending] {
                 {
                   const std::lock_guard lock(pending->mutex);
                   pending->told = true;
                   if (!pending->outcome) return;
                 }
                 pending->done(std::move(*pending->outcome));
               });
}

// A verb that answers inside the call.
template <typename Outcome, typename Verb>
void run_verb(ServerJobs* jobs, Offload* offload, AdminCall call, std::function<void(Outcome)> done,
              Verb verb) {
  start_elsewhere<Outcome>(
      offload, std::move(done),
      [jobs, call = std::move(call), verb = std::move(verb)](const auto& arrive) {
        const auto job = jobs->admit(call);
        arrive(job.is_ok() ? verb(job.value().get(), call) : Outcome(job.status()));
      });
}

// A verb that answers later.
template <typename Outcome, typename Verb>
void start_verb(ServerJobs* jobs, Offload* offload, AdminCall call,
                std::function<void(Outcome)> done, Verb verb) {
  start_elsewhere<Outcome>(
      offload, std::move(done),
      [jobs, call = std::move(call), verb = std::move(verb)](const auto& arrive) {
        const auto job = jobs->admit(call);
        if (!job.is_ok()) return arrive(Outcome(job.status()));
        verb(job.value().get(), call, std::function<void(Outcome)>(arrive));
      });
}

using ShardStates = Result<std::vector<ShardState>>;

}  // namespace

void LocalAdmin::open_job(OpenJob job, Done done) {
  start_elsewhere<Status>(
      offload_, std::move(done),
      [jobs = jobs_, job = std::move(job)](const auto& arrive) { arrive(jobs->open(job)); });
}

void LocalAdmin::holdings(std::string name, uint64_t term,
                          std::function<void(Result<Holdings>)> done) {
  start_elsewhere<Result<Holdings>>(
      offload_, std::move(done), [jobs = jobs_, name = std::move(name), term](const auto& arrive) {
        arrive(jobs->holdings(name, term));
      });
}

void LocalAdmin::assign(AdminCall call, Assignments places, States done) {
  run_verb<ShardStates>(jobs_, offload_, std::move(call), std::move(done),
                        [places = std::move(places)](JobNamespace* job, const AdminCall&) {
                          return job->assign(places);
                        });
}

void LocalAdmin::seal(AdminCall call, States done) {
  run_verb<ShardStates>(jobs_, offload_, std::move(call), std::move(done),
                        [](JobNamespace* job, const AdminCall& c) { return job->seal(c); });
}

void LocalAdmin::copy(AdminCall call, ServerId target, std::string address, States done) {
  start_verb<ShardStates>(jobs_, offload_, std::move(call), std::move(done),
                          [target, address = std::move(address)](
                              JobNamespace* job, const AdminCall& c, const States& told) {
                            job->copy(c, target, address, told);
                          });
}

void LocalAdmin::load(AdminCall call, LoadJob load, Done done) {
  run_verb<Status>(jobs_, offload_, std::move(call), std::move(done),
                   [load = std::move(load)](JobNamespace* job, const AdminCall& c) {
                     return job->load(c, load);
                   });
}

void LocalAdmin::open_pass(AdminCall call, uint32_t pass, uint64_t geometry, Done done) {
  start_verb<Status>(jobs_, offload_, std::move(call), std::move(done),
                     [=](JobNamespace* job, const AdminCall& c, const Done& told) {
                       job->open_pass(c, pass, geometry, told);
                     });
}

void LocalAdmin::close_below(AdminCall call, uint32_t pass, Done done) {
  start_verb<Status>(jobs_, offload_, std::move(call), std::move(done),
                     [=](JobNamespace* job, const AdminCall& c, const Done& told) {
                       job->close_below(c, pass, told);
                     });
}

void LocalAdmin::marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
                        std::function<void(Result<std::vector<uint32_t>>)> done) {
  using Masks = Result<std::vector<uint32_t>>;
  start_verb<Masks>(
      jobs_, offload_, std::move(call), std::move(done),
      [=](JobNamespace* job, const AdminCall& c, const std::function<void(Masks)>& told) {
        job->marked(c, section, blocks, any, told);
      });
}

void LocalAdmin::mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
                      Done done) {
  start_verb<Status>(jobs_, offload_, std::move(call), std::move(done),
                     [geometry, ids = std::move(ids), verdict](
                         JobNamespace* job, const AdminCall& c, const Done& told) {
                       job->mark(c, geometry, ids, verdict, told);
                     });
}

void LocalAdmin::void_member(AdminCall call, uint64_t round, BlockId block, Done done) {
  run_verb<Status>(
      jobs_, offload_, std::move(call), std::move(done),
      [=](JobNamespace* job, const AdminCall& c) { return job->void_member(c, round, block); });
}

void LocalAdmin::save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
                      std::function<void(Result<std::vector<SavedShard>>)> done) {
  run_verb<Result<std::vector<SavedShard>>>(
      jobs_, offload_, std::move(call), std::move(done),
      [folder = std::move(folder), number, committed](JobNamespace* job, const AdminCall& c) {
        return job->save(c, folder, number, committed);
      });
}

void LocalAdmin::totals(AdminCall call, bool rows, std::vector<ExpectedCount> expected,
                        std::function<void(Result<JobTotals>)> done) {
  run_verb<Result<JobTotals>>(
      jobs_, offload_, std::move(call), std::move(done),
      [rows, expected = std::move(expected)](JobNamespace* job, const AdminCall& c) {
        return job->totals(c, rows, expected);
      });
}

void LocalAdmin::close_job(AdminCall call, Done done) {
  start_elsewhere<Status>(
      offload_, std::move(done),
      [jobs = jobs_, call = std::move(call)](const auto& arrive) { arrive(jobs->close(call)); });
}

}  // namespace flux
