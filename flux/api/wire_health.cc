// What workers measured of their training, in and out of messages.
#include <algorithm>
#include <array>

#include "flux/api/wire_values.h"

namespace flux {
namespace {

constexpr uint32_t kKinds = static_cast<uint32_t>(HeadKind::kClasses) + 1;

// In the order of the bytes; new ones at the end.
template <typename Head>
auto sums_of(Head* h) {
  return std::array{&h->loss,          &h->constant,   &h->gap_squares,        &h->label,
                    &h->label_squares, &h->prediction, &h->prediction_squares, &h->product,
                    &h->sure,          &h->sure_wrong, &h->sure_expected};
}

Status take_head(const wire::HeadHealth& in, HeadHealth* h) {
  if (in.name().size() > kHealthNameMax)
    return invalid("a report of a head with a name of {} bytes", in.name().size());
  if (in.kind() >= kKinds) return invalid("a report of a head of kind {}", in.kind());
  h->name = in.name();
  h->kind = static_cast<HeadKind>(in.kind());
  h->examples = in.examples();
  h->batches = in.batches();
  const auto sums = sums_of(h);
  for (int i = 0; i < in.sums_size() && static_cast<size_t>(i) < sums.size(); ++i)
    *sums[static_cast<size_t>(i)] = in.sums(i);
  return Status::ok();
}

Status take_piece(const wire::HealthPiece& in, HealthPiece* p) {
  const auto parts = static_cast<size_t>(std::max(in.heads_size(), in.layers_size()));
  if (parts > kHealthPartsMax)
    return invalid("a report of the health of {} heads or layers, at most {}", parts,
                   kHealthPartsMax);
  *p = {in.lane(), in.number(),       in.phase(), in.examples(), in.batches(),
        in.loss(), in.loss_squares(), in.norms(), in.norm(),     {},
        {}};
  for (const wire::HeadHealth& head : in.heads())
    FLUX_RETURN_IF_ERROR(take_head(head, &p->heads.emplace_back()));
  for (const wire::LayerHealth& layer : in.layers()) {
    if (layer.name().size() > kHealthNameMax)
      return invalid("a report of a layer with a name of {} bytes", layer.name().size());
    p->layers.push_back({layer.name(), layer.units(), layer.dead()});
  }
  return Status::ok();
}

}  // namespace

void put_health(const std::vector<HealthPiece>& pieces, WireHealth* out) {
  for (const HealthPiece& piece : pieces) {
    wire::HealthPiece* p = out->Add();
    p->set_lane(piece.lane);
    p->set_number(piece.number);
    p->set_phase(piece.phase);
    p->set_examples(piece.examples);
    p->set_batches(piece.batches);
    p->set_loss(piece.loss);
    p->set_loss_squares(piece.loss_squares);
    p->set_norms(piece.norms);
    p->set_norm(piece.norm);
    for (const HeadHealth& head : piece.heads) {
      wire::HeadHealth* h = p->add_heads();
      h->set_name(head.name);
      h->set_kind(static_cast<uint32_t>(head.kind));
      h->set_examples(head.examples);
      h->set_batches(head.batches);
      for (const double* sum : sums_of(&head)) h->add_sums(*sum);
    }
    for (const LayerHealth& layer : piece.layers) {
      wire::LayerHealth* l = p->add_layers();
      l->set_name(layer.name);
      l->set_units(layer.units);
      l->set_dead(layer.dead);
    }
  }
}

Status take_health(const WireHealth& in, std::vector<HealthPiece>* out) {
  if (static_cast<size_t>(in.size()) > kHealthPiecesMax)
    return invalid("a report of {} pieces of health, at most {}", in.size(), kHealthPiecesMax);
  for (const wire::HealthPiece& piece : in)
    FLUX_RETURN_IF_ERROR(take_piece(piece, &out->emplace_back()));
  return Status::ok();
}

}  // namespace flux
