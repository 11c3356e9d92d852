// entrywise_product: mul, by the name that layer files of other systems know.
#include "flux/nn/operator.h"

namespace flux {

OperatorDef operator_mul();

OperatorDef operator_entrywise_product() {
  OperatorDef def = operator_mul();
  def.info.name = "entrywise_product";
  def.info.doc += " Another name for mul.";
  return def;
}

}  // namespace flux
