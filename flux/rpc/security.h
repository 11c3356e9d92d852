// SecurityOptions: how the two ends of a connection prove who they are.
//
// Three ways: mutual TLS (a job's own authority, made by `flux certs`; the role is in the
// certificate), a token (a secret file, mode 0600; proves membership, the role is what the peer
// says), or neither. Listening beyond this host without TLS or token is refused unless `insecure`.
// Plain values, filled in main.
#pragma once

#include <string>

namespace flux {

struct SecurityOptions {
  std::string certificates;  // folder with ca.pem, <role>.pem, <role>.key; empty: no TLS
  std::string token;         // the secret itself (read from a file in main); empty: none
  bool insecure = false;     // allow neither on an address beyond localhost
};

}  // namespace flux
