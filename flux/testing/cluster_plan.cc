#include "flux/testing/cluster_plan.h"

#include <fmt/format.h>

#include "flux/base/hash.h"

namespace flux {
namespace {

uint32_t between(Random* random, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(random->below(high - low + 1));
}

SimPass draw_pass(Random* random, uint32_t pass) {
  SimPass out;
  out.pass = pass;
  out.batch_size = between(random, 1, 4);
  out.blocks = between(random, 1, 5);
  out.block_records = out.batch_size * between(random, 1, 4);
  out.last_records = between(random, 1, out.block_records);
  out.shuffle_seed = random->chance(0.7) ? random->next() | 1 : 0;
  return out;
}

// Few: whoever meets a deadly record dies, and each needs some deaths until it is set aside.
SimFlaws draw_flaws(Random* random, uint64_t records) {
  SimFlaws flaws;
  const uint32_t bad = random->chance(0.15) ? between(random, 1, 2) : 0;
  for (uint32_t i = 0; i < bad; ++i) flaws.not_finite.insert(random->below(records));
  if (random->chance(0.08)) flaws.deadly.insert(random->below(records));
  return flaws;
}

NetFaults draw_net(Random* random) {
  NetFaults net;
  if (random->chance(0.2)) return net;  // a good network
  net.lost = random->uniform() * 0.25;
  net.doubled = random->uniform() * 0.25;
  net.breaks = random->chance(0.5) ? random->uniform() * 0.05 : 0;
  const TimeNs longest[] = {5 * kMillisecond, 50 * kMillisecond, 500 * kMillisecond};
  net.delay_max = longest[random->below(3)];
  return net;
}

}  // namespace

ClusterPlan draw_cluster_plan(Random* random) {
  ClusterPlan plan;
  plan.servers = between(random, 1, 4);
  plan.workers = between(random, 1, 5);
  plan.shards = between(random, 2, 8);
  plan.mode = random->chance(0.6) ? "async" : "sync";
  plan.schedule.passes = between(random, 1, 2);
  plan.schedule.epochs = static_cast<uint16_t>(between(random, 1, 2));
  for (uint32_t p = 0; p < plan.schedule.passes; ++p) plan.passes.push_back(draw_pass(random, p));
  plan.checkpoint_every_s = random->chance(0.7) ? 0.2 + random->uniform() * 5 : 0;
  plan.checkpoint_keep = between(random, 1, 3);
  plan.deterministic = random->chance(0.1);
  plan.has_test = random->chance(0.2);
  plan.net = draw_net(random);
  if (random->chance(0.2)) plan.disk = {random->uniform() * 0.05, random->uniform() * 0.02, 0, 0};
  plan.faults_end = static_cast<TimeNs>(between(random, 2, 20)) * kSecond;
  plan.rest_max = static_cast<TimeNs>(between(random, 200, 4000)) * kMillisecond;
  plan.kill_worker = between(random, 0, 4);
  plan.leave_worker = between(random, 0, 2);
  plan.pause_worker = between(random, 0, 2);
  plan.isolate_worker = between(random, 0, 2);
  plan.replicas = random->chance(0.75) ? 2 : 1;
  plan.kill_server = random->chance(0.7) ? between(random, 1, 3) : 0;
  plan.pause_server = random->chance(0.3) ? 1 : 0;
  plan.isolate_server = random->chance(0.3) ? 1 : 0;
  plan.cut = random->chance(0.4) ? between(random, 1, 3) : 0;
  plan.power_cut = random->chance(0.15) ? 1 : 0;
  plan.drain = random->chance(0.3) ? 1 : 0;
  plan.add_server = random->chance(0.3) ? 1 : 0;
  plan.move = random->chance(0.3) ? 1 : 0;
  plan.kill_coordinator = random->chance(0.4) ? between(random, 1, 3) : 0;
  plan.stop_job = random->chance(0.2) ? 1 : 0;
  plan.lie = random->chance(0.3) ? 1 : 0;
  plan.jump_clock = random->chance(0.3) ? between(random, 1, 3) : 0;
  plan.drift_clock = random->chance(0.3) ? 1 : 0;
  for (SimPass& pass : plan.passes) pass.flaws = draw_flaws(random, sim_geometry(pass).records());
  // Not drawn, so that they move no other choice of a seed.
  const uint64_t more = hash_pair(static_cast<uint64_t>(plan.rest_max), plan.shards);
  plan.schedule.phases = more % 4 == 0 ? 2 : 1;
  if (more / 4 % 8 == 0) plan.disk.unread = 0.02;
  if (more / 32 % 4 == 0) plan.disk.bent = 0.1;
  plan.rebalance = more % 5 == 0;
  plan.rumours = hash_pair(static_cast<uint64_t>(plan.faults_end), plan.rest_max) % 2 == 0;
  return plan;
}

std::string to_string(const ClusterPlan& plan) {
  std::string passes;
  for (const SimPass& p : plan.passes)
    passes += fmt::format("{}{} examples in {} blocks, batch {}, {} not finite, {} deadly",
                          passes.empty() ? "" : "; ", sim_geometry(p).records(), p.blocks,
                          p.batch_size, p.flaws.not_finite.size(), p.flaws.deadly.size());
  return fmt::format(
      "{} server(s), {} replica(s), {} worker(s), {} shards, {}, {} pass(es) x {} phase(s) "
      "x {} epoch(s) "
      "({}), "
      "checkpoint "
      "every {:.1f} s; lost {:.2f} doubled {:.2f} breaks {:.3f} delay {} ms; disk fails {:.3f} "
      "dies {:.3f} unread {:.3f} bent {:.3f}; faults until {} s{}{}",
      plan.servers, plan.replicas, plan.workers, plan.shards, plan.mode, plan.schedule.passes,
      plan.schedule.phases, plan.schedule.epochs, passes, plan.checkpoint_every_s, plan.net.lost,
      plan.net.doubled, plan.net.breaks, plan.net.delay_max / kMillisecond, plan.disk.fails,
      plan.disk.dies, plan.disk.unread, plan.disk.bent, plan.faults_end / kSecond,
      plan.rebalance ? "; rebalances" : "", plan.rumours ? "; rumours" : "");
}

}  // namespace flux
