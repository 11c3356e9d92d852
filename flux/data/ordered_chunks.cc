#include "flux/data/ordered_chunks.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace flux {
namespace {

class OrderedRun {
 public:
  OrderedRun(PiecewiseFile* file, uint64_t chunks, const std::function<void(uint64_t)>& written)
      : chunks_(chunks), file_(file), written_(written) {}

  void work(const MakeChunk& make) {
    PiecePacker packer(file_->packing());
    for (uint64_t chunk; (chunk = next_.fetch_add(1)) < chunks_;) {
      const auto piece = packer.pack(make(chunk));
      std::unique_lock lock(mutex_);
      turned_.wait(lock, [&] { return turn_ == chunk || !status_.is_ok(); });
      if (!status_.is_ok()) return;
      lock.unlock();  // the turn itself keeps the others away
      Status status = piece.is_ok() ? file_->append(piece.value()) : piece.status();
      if (status.is_ok() && written_) written_(chunk);
      lock.lock();
      status_ = std::move(status);
      ++turn_;
      turned_.notify_all();
    }
  }
  const Status& status() const { return status_; }  // after all threads ended

 private:
  const uint64_t chunks_;
  PiecewiseFile* const file_;
  const std::function<void(uint64_t)>& written_;
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable turned_;
  uint64_t turn_ = 0;  // the chunk to be written now
  Status status_;
};

}  // namespace

size_t chunk_threads(uint64_t chunks, unsigned wanted) {
  constexpr uint64_t kThreadsMax = 256;
  return std::min<uint64_t>({std::max(wanted, 1U), std::max<uint64_t>(chunks, 1), kThreadsMax});
}

Status write_chunks(PiecewiseFile* file, uint64_t chunks, const std::vector<MakeChunk>& makers,
                    const std::function<void(uint64_t chunk)>& written) {
  OrderedRun run(file, chunks, written);
  std::vector<std::thread> others;
  for (size_t i = 1; i < makers.size(); ++i)
    others.emplace_back([&run, &make = makers[i]] { run.work(make); });
  run.work(makers[0]);
  for (auto& thread : others) thread.join();
  return run.status();
}

}  // namespace flux
