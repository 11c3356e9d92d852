#include "flux/election/lease_keeper.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

namespace flux {
namespace {

TimeNs trusted_ns(int64_t ttl_s) {
  return ttl_s * kSecond / 4 * 3;
}

}  // namespace

TimeNs boot_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

LeaseKeeper::LeaseKeeper(EtcdClient* client, const EtcdLease& lease, TimeNs asked)
    : client_(client),
      lease_(lease),
      period_(lease.ttl_s * kSecond / 10),
      renewed_(asked),
      until_(asked + trusted_ns(lease.ttl_s)) {
  thread_ = std::thread([this] { run(); });
}

LeaseKeeper::~LeaseKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status LeaseKeeper::held() const {
  const std::lock_guard lock(mutex_);
  return held_locked();
}

Status LeaseKeeper::held_locked() const {
  if (!lost_.is_ok()) return lost_;
  const TimeNs now = boot_now_ns();
  if (now < until_) return Status::ok();
  lost_ = error(Code::kStale,
                "the lease at etcd was last renewed {:.1f} s ago and may have run out{}{}",
                static_cast<double>(now - renewed_) * 1e-9, problem_.empty() ? "" : ": ", problem_);
  return lost_;
}

TimeNs LeaseKeeper::left_ns() const {
  const std::lock_guard lock(mutex_);
  return held_locked().is_ok() ? until_ - boot_now_ns() : 0;
}

void LeaseKeeper::give_up(Status why) {
  {
    const std::lock_guard lock(mutex_);
    if (lost_.is_ok()) lost_ = std::move(why);
  }
  changed_.notify_all();
}

void LeaseKeeper::run() {
  std::unique_lock lock(mutex_);
  const auto period = std::chrono::nanoseconds(period_);
  while (!ending_ && held_locked().is_ok()) {
    changed_.wait_for(lock, period, [&] { return ending_ || !lost_.is_ok(); });
    if (!ending_ && held_locked().is_ok()) renew(&lock);
  }
}

void LeaseKeeper::renew(std::unique_lock<std::mutex>* lock) {
  const TimeNs asked = boot_now_ns();
  const EtcdLimit limit{period_, until_ - asked};
  lock->unlock();
  const Result<int64_t> ttl_s = client_->keep_alive(lease_.id, limit);
  lock->lock();
  if (!held_locked().is_ok()) return;  // too late, whatever was answered
  if (ttl_s.is_ok()) {
    renewed_ = asked;
    until_ = std::max(until_, asked + trusted_ns(ttl_s.value()));
    problem_.clear();
    return;
  }
  problem_ = ttl_s.status().message();
  if (ttl_s.status().code() != Code::kUnavailable)
    lost_ = error(Code::kStale, "etcd has ended the lease: {}", problem_);
}

}  // namespace flux
