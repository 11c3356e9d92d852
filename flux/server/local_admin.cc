#include "flux/server/local_admin.h"

#include <utility>

namespace flux {
namespace {

// Runs `work` elsewhere and gives what it returns to `done`.
template <typename Outcome, typename Work>
void run_elsewhere(Offload* offload, std::function<void(Outcome)> done, Work work) {
  auto outcome = std::make_shared<std::optional<Outcome>>();
  offload->run([outcome, work = std::move(work)] { outcome->emplace(work()); },
               [outcome, done = std::move(done)] { done(std::move(**outcome)); });
}

// The same for a verb of an open job.
template <typename Outcome, typename Verb>
void run_verb(ServerJobs* jobs, Offload* offload, uint64_t incarnation,
              std::function<void(Outcome)> done, Verb verb) {
  run_elsewhere<Outcome>(offload, std::move(done),
                         [jobs, incarnation, verb = std::move(verb)]() -> Outcome {
                           const auto job = jobs->find(incarnation);
                           return job.is_ok() ? verb(job.value().get()) : Outcome(job.status());
                         });
}

}  // namespace

void LocalAdmin::open_job(OpenJob job, Done done) {
  run_elsewhere<Status>(offload_, std::move(done),
                        [jobs = jobs_, job = std::move(job)] { return jobs->open(job); });
}

void LocalAdmin::load(uint64_t incarnation, LoadJob load, Done done) {
  run_verb<Status>(jobs_, offload_, incarnation, std::move(done),
                   [load = std::move(load)](JobNamespace* job) { return job->load(load); });
}

void LocalAdmin::open_pass(uint64_t incarnation, uint32_t pass, uint64_t geometry, Done done) {
  run_verb<Status>(jobs_, offload_, incarnation, std::move(done),
                   [=](JobNamespace* job) { return job->open_pass(pass, geometry); });
}

void LocalAdmin::close_below(uint64_t incarnation, uint32_t pass, Done done) {
  run_verb<Status>(jobs_, offload_, incarnation, std::move(done),
                   [=](JobNamespace* job) { return job->close_below(pass); });
}

void LocalAdmin::marked(uint64_t incarnation, BlockId section, uint32_t blocks, bool any,
                        std::function<void(Result<std::vector<uint32_t>>)> done) {
  run_verb<Result<std::vector<uint32_t>>>(
      jobs_, offload_, incarnation, std::move(done),
      [=](JobNamespace* job) { return job->marked(section, blocks, any); });
}

void LocalAdmin::mark(uint64_t incarnation, uint64_t geometry, std::vector<BatchId> ids,
                      Verdict verdict, Done done) {
  run_verb<Status>(jobs_, offload_, incarnation, std::move(done),
                   [geometry, ids = std::move(ids), verdict](JobNamespace* job) {
                     return job->mark(geometry, ids, verdict);
                   });
}

void LocalAdmin::void_member(uint64_t incarnation, uint64_t round, BlockId block, Done done) {
  run_verb<Status>(jobs_, offload_, incarnation, std::move(done),
                   [=](JobNamespace* job) { return job->void_member(round, block); });
}

void LocalAdmin::save(uint64_t incarnation, std::string folder, uint64_t number,
                      std::function<void(Result<std::vector<SavedShard>>)> done) {
  run_verb<Result<std::vector<SavedShard>>>(
      jobs_, offload_, incarnation, std::move(done),
      [folder = std::move(folder), number](JobNamespace* job) {
        return job->save(folder, number);
      });
}

void LocalAdmin::totals(uint64_t incarnation, bool rows, std::vector<ExpectedCount> expected,
                        std::function<void(Result<JobTotals>)> done) {
  run_verb<Result<JobTotals>>(jobs_, offload_, incarnation, std::move(done),
                              [rows, expected = std::move(expected)](JobNamespace* job) {
                                return job->totals(rows, expected);
                              });
}

void LocalAdmin::close_job(uint64_t incarnation, Done done) {
  run_elsewhere<Status>(offload_, std::move(done), [jobs = jobs_, incarnation] {
    jobs->close(incarnation);
    return Status::ok();
  });
}

}  // namespace flux
