// The handshake of a connection: who speaks, in which version, and proof of the token.
//
// The token itself never travels. The listener sends a nonce, the client answers with an
// HMAC-SHA256 over both nonces, version, role and name, and the listener proves the same about
// itself, so each end knows that the other has the token. docs/internals/rpc.md draws it.
// ClientHandshake and ServerHandshake are state machines: frame in, frame out; no sockets.
// Threads: one. Failure: kInvalid, kCorrupt or kUnavailable with a line for people.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/rpc/frame.h"
#include "flux/rpc/service.h"

namespace flux {

constexpr size_t kNonceBytes = 32;
using Nonce = std::array<unsigned char, kNonceBytes>;

struct HandshakeIdentity {
  PeerRole role = PeerRole::kWorker;
  std::string name;  // for people, at most 255 bytes
  uint8_t version_min = kFrameVersionMin;
  uint8_t version_max = kFrameVersionMax;
};

// A frame of the handshake: kind and control part.
struct HandshakeFrame {
  FrameKind kind = FrameKind::kHello;
  std::string control;
};

Nonce random_nonce();

class ClientHandshake {
 public:
  ClientHandshake(HandshakeIdentity self, std::string token, const Nonce& nonce);
  HandshakeFrame hello() const;
  // What the listener sent. `answer` is set when there is something to send back.
  Status receive(FrameKind kind, Code code, std::string_view control, HandshakeFrame* answer,
                 bool* has_answer);
  bool done() const { return done_; }
  uint8_t version() const { return version_; }
  const std::string& server_name() const { return server_name_; }

 private:
  Status receive_challenge(std::string_view control, HandshakeFrame* answer);
  Status receive_ok(std::string_view control);

  HandshakeIdentity self_;
  std::string token_;
  Nonce nonce_;
  Nonce server_nonce_{};
  std::string server_name_;
  uint8_t version_ = 0;
  bool challenged_ = false;
  bool done_ = false;
};

class ServerHandshake {
 public:
  ServerHandshake(std::string name, std::string token, const Nonce& nonce);
  // Always answers when it returns ok; then done() says whether the peer is let in.
  Status receive(FrameKind kind, std::string_view control, HandshakeFrame* answer);
  bool done() const { return done_; }
  const HandshakeIdentity& peer() const { return peer_; }
  uint8_t version() const { return version_; }

 private:
  Status receive_hello(std::string_view control, HandshakeFrame* answer);
  Status receive_proof(std::string_view control, HandshakeFrame* answer);
  void make_ok(HandshakeFrame* answer);

  std::string name_;
  std::string token_;
  Nonce nonce_;
  Nonce client_nonce_{};
  HandshakeIdentity peer_;
  uint8_t version_ = 0;
  bool greeted_ = false;
  bool done_ = false;
};

}  // namespace flux
