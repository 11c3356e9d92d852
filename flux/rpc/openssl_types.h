// Owners of OpenSSL's objects, and its last failure in words. Private to rpc/.
// Threads: as the objects themselves.
#pragma once

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace flux {

template <auto kFree>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using OpensslOwned = std::unique_ptr<T, OpensslFree<kFree>>;

using OwnedSslContext = OpensslOwned<SSL_CTX, SSL_CTX_free>;
using OwnedSsl = OpensslOwned<SSL, SSL_free>;
using OwnedBioMethod = OpensslOwned<BIO_METHOD, BIO_meth_free>;
using OwnedBio = OpensslOwned<BIO, BIO_free_all>;
using OwnedKey = OpensslOwned<EVP_PKEY, EVP_PKEY_free>;
using OwnedCertificate = OpensslOwned<X509, X509_free>;

// The newest failure of this thread; empties the list.
inline std::string openssl_failure() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  std::string text = reason != nullptr ? reason : "unknown failure";
  ERR_clear_error();
  return text;
}

}  // namespace flux
