#include "flux/nn/fc_products.h"

namespace flux {

Result<std::unique_ptr<FcProducts>> make_products(const FcShape& shape, NetMemory& memory) {
  if (auto products = make_avx512_products(shape, memory, /*amx=*/true)) return products;
  return make_onednn_products(shape, memory);
}

}  // namespace flux
