#include "flux/main/role_process.h"

#include <utility>

#include <unistd.h>

#include "flux/base/hash.h"
#include "flux/client/coordinator_channel.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/leash.h"
#include "flux/rpc/address.h"
#include "flux/rpc/chaos_channel.h"
#include "flux/rpc/fault_channel.h"
#include "flux/storage/atomic_file.h"

namespace flux {

Result<SecurityOptions> security_options(const SecurityArguments& arguments) {
  SecurityOptions options;
  options.insecure = arguments.insecure;
  if (!arguments.certificates.empty()) {
    if (!is_folder(arguments.certificates))
      return invalid("--certs {}: no such folder; make it with: flux certs --out {}",
                     arguments.certificates, arguments.certificates);
    options.certificates = arguments.certificates;
  }
  if (!arguments.token_file.empty()) {
    FLUX_ASSIGN_OR_RETURN(options.token, read_secret(arguments.token_file));
  }
  if (arguments.token_stdin) {
    FLUX_ASSIGN_OR_RETURN(const std::string token, take_leash());
    if (options.certificates.empty()) options.token = token;
  }
  return options;
}

Result<OpenedChannel> open_channel(IoLoop* loop, const std::string& address, const Caller& caller,
                                   uint64_t salt) {
  SocketChannelOptions options;
  options.role = caller.role;
  options.name = caller.name;
  options.security = caller.security;
  options.on_break = caller.on_break;
  FLUX_ASSIGN_OR_RETURN(auto socket, SocketChannel::create(*loop, address, options));
  OpenedChannel opened;
  opened.socket = socket.get();
  opened.channel = std::move(socket);
  if (!caller.faults.empty())
    opened.channel = std::make_unique<FaultChannel>(*loop, std::move(opened.channel), caller.faults,
                                                    caller.name, address);
  if (caller.chaos.empty()) return opened;
  FLUX_ASSIGN_OR_RETURN(ChaosOptions chaos, parse_chaos(caller.chaos));
  chaos.seed = hash_pair(chaos.seed, hash_pair(salt, hash_bytes(caller.name)));
  opened.channel = std::make_unique<ChaosChannel>(*loop, std::move(opened.channel), chaos);
  return opened;
}

Result<OpenedChannel> open_coordinator(IoLoop* loop, const std::string& addresses,
                                       const Caller& caller) {
  FLUX_ASSIGN_OR_RETURN(const auto list, split_addresses(addresses));
  std::vector<std::unique_ptr<Channel>> channels;
  for (const std::string& address : list) {
    FLUX_ASSIGN_OR_RETURN(OpenedChannel one, open_channel(loop, address, caller, channels.size()));
    channels.push_back(std::move(one.channel));
  }
  OpenedChannel opened;
  opened.channel = std::make_unique<CoordinatorChannel>(std::move(channels));
  return opened;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::string default_name(const char* role) {
  return fmt::format("{}@{}.{}", role, host_name(), ::getpid());
}

std::string advertised(const std::string& listen) {
  auto address = parse_address(listen);
  if (!address.is_ok() || address.value().local) return listen;
  if (address.value().host != "0.0.0.0" && address.value().host != "::") return listen;
  address.value().host = host_name();
  return address.value().text();
}

}  // namespace flux
