#include "flux/main/saved_model.h"

#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "flux/checkpoint/store.h"
#include "flux/coordinator/same_job.h"
#include "flux/main/chosen_checkpoint.h"
#include "flux/main/pass_files.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

Status load_shards(const CheckpointStore& store, SavedModel* model) {
  const Manifest& manifest = model->manifest;
  if (manifest.shards.size() != model->server->shard_count())
    return error(Code::kCorrupt, "{}: {} shards, this job has {}", model->path,
                 manifest.shards.size(), model->server->shard_count());
  std::atomic<size_t> next{0};
  std::vector<Status> results(model->threads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < model->threads; ++t)
    threads.emplace_back([&, t] {
      for (size_t s; results[t].is_ok() && (s = next.fetch_add(1)) < manifest.shards.size();) {
        auto image = store.read_shard(manifest, s);
        if (image.is_ok() && image.value().replica.shard() != s)
          image = error(Code::kCorrupt, "{}: shard {} where {} is expected",
                        manifest.shards[s].file.name, image.value().replica.shard(), s);
        results[t] = image.is_ok() ? model->server->load(image.value()) : image.status();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) FLUX_RETURN_IF_ERROR(result);
  // Files that only training needs are checked by everybody: a bad checkpoint is bad for all.
  for (const FileInfo& file : manifest.files)
    FLUX_RETURN_IF_ERROR(store.read(manifest, file).status());
  return Status::ok();
}

Status make_server_for(SavedModel* model) {
  // Above every epoch that a shard of the checkpoint can have.
  const ShardEpoch epoch{model->manifest.epoch.term + 1, 1};
  FLUX_ASSIGN_OR_RETURN(const ServerOptions options,
                        server_options(model->role, model->incarnation, epoch));
  FLUX_ASSIGN_OR_RETURN(model->server, Server::create(options));
  return Status::ok();
}

std::vector<std::string> pass_names(const Job& job) {
  std::vector<std::string> names;
  for (const PassSpec& pass : job.passes) names.push_back(pass.name);
  return names;
}

Status load_checkpoint(const CheckpointStore& store, uint64_t number, SavedModel* model) {
  const auto unless_replaced = [&](const Status& status) {
    return status.is_ok() || store.is_committed(number)
               ? status
               : error(Code::kUnavailable, "{} was replaced while it was read",
                       store.path_of(number));
  };
  auto found = store.load(number);
  if (!found.is_ok()) return unless_replaced(found.status());
  model->manifest = std::move(found).value();
  model->path = store.path_of(model->manifest.number);
  const std::vector<std::string> passes = pass_names(model->role.job);
  std::map<std::string, std::string> wanted = describe_model(model->role);
  // Whoever only looks at a model may read other files than those that it was trained on.
  if (const auto trained = model->manifest.model.find("data.format");
      trained != model->manifest.model.end())
    wanted["data.format"] = trained->second;
  FLUX_RETURN_IF_ERROR(check_same_job(store, model->manifest, wanted, passes, kLookAdvice));
  FLUX_RETURN_IF_ERROR(make_server_for(model));
  return unless_replaced(load_shards(store, model));
}

Result<std::unique_ptr<SavedModel>> try_open(const Job& job, const std::string& which) {
  auto model = std::make_unique<SavedModel>();
  FLUX_ASSIGN_OR_RETURN(model->role, open_role_job(job));
  FLUX_ASSIGN_OR_RETURN(model->precision, choose_precision(job.precision));
  model->threads = worker_threads(job, -1);
  model->incarnation = random_id();
  FLUX_ASSIGN_OR_RETURN(const CheckpointPlace place, choose_checkpoint(job, which));
  FLUX_RETURN_IF_ERROR(load_checkpoint(CheckpointStore(place.folder), place.number, model.get()));
  return model;
}

}  // namespace

Result<std::unique_ptr<SavedModel>> open_saved_model(const Job& job, const std::string& which) {
  constexpr int kTries = 20;
  for (int i = 1;; ++i) {
    auto opened = try_open(job, which);
    if (opened.status().code() != Code::kUnavailable || i == kTries) return opened;
  }
}

Status check_goes_on(const RoleJob& role) {
  const CheckpointStore store(join_path(role.job.output, "checkpoints"));
  const auto newest = store.load_newest();
  if (newest.status().code() == Code::kNotFound) return Status::ok();
  if (!newest.is_ok()) return newest.status();
  FLUX_RETURN_IF_ERROR(check_same_job(store, newest.value(), describe_model(role),
                                      pass_names(role.job), kTrainAdvice));
  return check_closed_passes(role.job, newest.value().closed);
}

}  // namespace flux
