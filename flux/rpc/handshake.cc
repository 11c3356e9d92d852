#include "flux/rpc/handshake.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "flux/base/bytes.h"

namespace flux {
namespace {

constexpr size_t kNameMax = 255;
constexpr size_t kProofBytes = 32;

// Every field in one place, so that none can be changed on the way.
std::string proof(std::string_view who, const std::string& token, const HandshakeIdentity& client,
                  uint8_t version, const Nonce& client_nonce, const Nonce& server_nonce) {
  ByteWriter text;
  text.text("flux rpc 1");
  text.text(who);
  text.bytes(client_nonce.data(), client_nonce.size());
  text.bytes(server_nonce.data(), server_nonce.size());
  text.put(version);
  text.put(client.version_min);
  text.put(client.version_max);
  text.put(client.role);
  text.text(client.name);
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const auto* made =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.str().data()), text.size(), out, &size);
  FLUX_CHECK(made != nullptr && size == kProofBytes, "HMAC-SHA256 is not available");
  return {reinterpret_cast<const char*>(out), size};
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool read_nonce(ByteReader* in, Nonce* out) {
  const char* p = in->take(out->size());
  if (p != nullptr) std::memcpy(out->data(), p, out->size());
  return p != nullptr;
}

Status malformed(const char* what) {
  return error(Code::kCorrupt, "handshake: malformed {}", what);
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, 1000));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  FLUX_CHECK(RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) == 1,
             "the system gives no random numbers");
  return nonce;
}

// --- client ------------------------------------------------------------------------------------

ClientHandshake::ClientHandshake(HandshakeIdentity self, std::string token, const Nonce& nonce)
    : self_(std::move(self)), token_(std::move(token)), nonce_(nonce) {
  if (self_.name.size() > kNameMax) self_.name.resize(kNameMax);
}

HandshakeFrame ClientHandshake::hello() const {
  ByteWriter out;
  out.put(self_.version_min);
  out.put(self_.version_max);
  out.put(self_.role);
  out.put<uint8_t>(token_.empty() ? 0 : 1);
  out.bytes(nonce_.data(), nonce_.size());
  out.text(self_.name);
  return {FrameKind::kHello, out.take()};
}

Status ClientHandshake::receive(FrameKind kind, Code code, std::string_view control,
                                HandshakeFrame* answer, bool* has_answer) {
  *has_answer = false;
  if (done_) return malformed("order of frames");
  switch (kind) {
    case FrameKind::kRefuse:
      return Status(code, "refused: " + printable(control));
    case FrameKind::kGoaway:
      return error(Code::kUnavailable, "the peer goes away: {}", printable(control));
    case FrameKind::kChallenge:
      *has_answer = true;
      return receive_challenge(control, answer);
    case FrameKind::kHelloOk:
      return receive_ok(control);
    default:
      return malformed("order of frames");
  }
}

Status ClientHandshake::receive_challenge(std::string_view control, HandshakeFrame* answer) {
  ByteReader in(control);
  version_ = in.get<uint8_t>();
  if (challenged_ || !read_nonce(&in, &server_nonce_) || in.left() != 0)
    return malformed("challenge");
  if (token_.empty()) return invalid("the listener asks for a token, and this end has none");
  if (version_ < self_.version_min || version_ > self_.version_max) return malformed("version");
  challenged_ = true;
  *answer = {FrameKind::kProof, proof("client", token_, self_, version_, nonce_, server_nonce_)};
  return Status::ok();
}

Status ClientHandshake::receive_ok(std::string_view control) {
  ByteReader in(control);
  const auto version = in.get<uint8_t>();
  const std::string name = in.text(kNameMax);
  const std::string shown = in.text(kProofBytes);
  if (!in.ok() || in.left() != 0) return malformed("answer");
  if (version < self_.version_min || version > self_.version_max) return malformed("version");
  if (!token_.empty()) {
    if (!challenged_) return invalid("the listener does not ask for the token; it is not ours");
    const std::string expected = proof("server", token_, self_, version, nonce_, server_nonce_);
    if (version != version_ || !same_secret(shown, expected))
      return invalid("the listener does not know our token; it is not ours");
  }
  version_ = version;
  server_name_ = printable(name);
  done_ = true;
  return Status::ok();
}

// --- listener ----------------------------------------------------------------------------------

ServerHandshake::ServerHandshake(std::string name, std::string token, const Nonce& nonce)
    : name_(std::move(name)), token_(std::move(token)), nonce_(nonce) {
  if (name_.size() > kNameMax) name_.resize(kNameMax);
}

Status ServerHandshake::receive(FrameKind kind, std::string_view control, HandshakeFrame* answer) {
  if (kind == FrameKind::kHello && !greeted_) return receive_hello(control, answer);
  if (kind == FrameKind::kProof && greeted_ && !done_) return receive_proof(control, answer);
  return malformed("order of frames");
}

Status ServerHandshake::receive_hello(std::string_view control, HandshakeFrame* answer) {
  ByteReader in(control);
  peer_.version_min = in.get<uint8_t>();
  peer_.version_max = in.get<uint8_t>();
  const auto role = in.get<uint8_t>();
  const auto has_token = in.get<uint8_t>();
  read_nonce(&in, &client_nonce_);
  peer_.name = in.text(kNameMax);
  // A later version may say more; what it adds comes last and is not read here.
  if (!in.ok() || peer_.version_min > peer_.version_max) return malformed("hello");
  version_ = std::min(peer_.version_max, kFrameVersionMax);
  if (version_ < std::max(peer_.version_min, kFrameVersionMin))
    return invalid(
        "protocol versions {} to {} are not spoken here, only {} to {}; use the same "
        "flux on both ends",
        peer_.version_min, peer_.version_max, kFrameVersionMin, kFrameVersionMax);
  if (role >= kPeerRoles) return invalid("role {} is not known", role);
  peer_.role = static_cast<PeerRole>(role);
  if (!token_.empty() && has_token == 0) return invalid("a token is needed to connect here");
  if (token_.empty() && has_token != 0)
    return invalid(
        "this listener has no token, so it cannot prove itself; start it with the same "
        "token or connect without one");
  greeted_ = true;
  if (token_.empty()) {
    make_ok(answer);
    return Status::ok();
  }
  ByteWriter out;
  out.put(version_);
  out.bytes(nonce_.data(), nonce_.size());
  *answer = {FrameKind::kChallenge, out.take()};
  return Status::ok();
}

Status ServerHandshake::receive_proof(std::string_view control, HandshakeFrame* answer) {
  if (!same_secret(control, proof("client", token_, peer_, version_, client_nonce_, nonce_)))
    return invalid("bad token");
  make_ok(answer);
  return Status::ok();
}

void ServerHandshake::make_ok(HandshakeFrame* answer) {
  ByteWriter out;
  out.put(version_);
  out.text(name_);
  out.text(token_.empty() ? std::string()
                          : proof("server", token_, peer_, version_, client_nonce_, nonce_));
  *answer = {FrameKind::kHelloOk, out.take()};
  done_ = true;
}

}  // namespace flux
