#include <glob.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <algorithm>
#include <nlohmann/json.hpp>
#include "flux/data/dataset.h"
#include "flux/base/hash.h"
#include "flux/base/random.h"
namespace flux {
uint64_t Geometry::records() const { uint64_t n=0; for (auto&b:blocks) n+=b.records; return n; }
uint32_t Geometry::batches_in(uint32_t b) const { return (blocks[b].records+batch_size-1)/batch_size; }
uint64_t Geometry::batches() const { uint64_t n=0; for (uint32_t b=0;b<blocks.size();++b) n+=batches_in(b); return n; }
uint32_t Geometry::batch_records(uint32_t b, uint32_t j) const { return std::min(batch_size, blocks[b].records-j*batch_size); }
std::string Geometry::to_json() const { nlohmann::json j; j["format"]=format; j["batch"]=batch_size; j["seed"]=shuffle_seed; for(auto&f:files) j["files"].push_back({f.path,f.bytes,f.records}); for(auto&b:blocks) j["blocks"].push_back({b.file,b.begin,b.end,b.first_record,b.records}); return j.dump(); }
uint64_t Geometry::hash() const { return hash_bytes(to_json())|1; }
Result<Geometry> Geometry::from_json(std::string_view t) { auto j=nlohmann::json::parse(t); Geometry g; g.format=j["format"]; g.batch_size=j["batch"]; g.shuffle_seed=j["seed"]; for(auto&f:j["files"]) g.files.push_back({f[0],f[1],f[2],false}); for(auto&b:j["blocks"]) g.blocks.push_back({b[0],b[1],b[2],b[3],b[4]}); return g; }
std::vector<std::string> geometry_differences(const Geometry& a, const Geometry& b) { std::vector<std::string> v; if(a.batch_size!=b.batch_size) v.push_back("batch_size"); return v; }
std::vector<uint32_t> block_order(const Geometry& g, uint32_t b, uint32_t e) { std::vector<uint32_t> o(g.blocks[b].records); for(uint32_t i=0;i<o.size();++i) o[i]=i; if(g.shuffle_seed){ Random r(hash_pair(g.shuffle_seed, hash_pair(b,e))); for(size_t i=o.size();i>1;--i) std::swap(o[i-1],o[r.below(i)]); } return o; }
FeatureCounts feature_counts(const DataOptions& o) { return {o.key_per_example?1U:26U,13}; }
uint64_t shuffle_seed_of(const DataOptions& o) { return hash_pair(o.seed,5)|1; }
Result<std::vector<std::string>> expand_globs(std::span<const std::string> ps) { std::vector<std::string> v; for(auto&p:ps){ glob_t g; if(glob(p.c_str(),0,nullptr,&g)!=0) return error(Code::kNotFound,"no file matches {}",p); for(size_t i=0;i<g.gl_pathc;++i) v.push_back(g.gl_pathv[i]); globfree(&g);} return v; }
Result<Geometry> Dataset::scan(std::span<const std::string> files, const DataOptions& o, unsigned) {
  Geometry g; g.format=o.format; g.batch_size=o.batch_size; g.shuffle_seed=o.shuffle?shuffle_seed_of(o):0; uint64_t first=0;
  for (auto&p:files){ std::ifstream in(p,std::ios::binary); std::stringstream ss; ss<<in.rdbuf(); std::string s=ss.str(); DataFile f{p,s.size(),0,false}; size_t at=0; uint32_t fi=g.files.size();
    while(at<s.size()){ DataBlock b; b.file=fi; b.begin=at; b.first_record=first; while(at<s.size()&&b.records<o.batch_size*16){ const char*nl=(const char*)memchr(s.data()+at,'\n',s.size()-at); at=nl?nl-s.data()+1:s.size(); ++b.records; ++f.records; ++first;} b.end=at; g.blocks.push_back(b);} g.files.push_back(f);} return g; }
struct R : BlockReader { std::string s; std::vector<uint32_t> st, order; DataOptions o; uint32_t bs; uint64_t first;
  Status read_batch(uint32_t j, Batch* out) const override { uint32_t n=std::min<uint32_t>(bs, order.size()-j*bs); out->size=n; out->dense=13; out->slots=o.key_per_example?1:26; out->labels.resize(n); out->dense_values.resize(n*13); out->keys.resize(n*out->slots);
    for(uint32_t i=0;i<n;++i){ const uint32_t r=order[j*bs+i]; const char* p=s.data()+st[r]; out->labels[i]=*p-'0'; p+=2; for(int d=0;d<13;++d){ char*e; float x=*p=='\t'?0:strtof(p,&e); p=(const char*)memchr(p,'\t',400)+1; out->dense_values[i*13+d]=o.dense_transform=="log1p"?log1pf(std::max(x,0.f)):x;} if(o.key_per_example){ out->keys[i]=(1ull<<56)|(first+r); continue;} for(uint64_t c=0;c<26;++c){ char*e; out->keys[i*26+c]=((c+1)<<32)|strtoul(p,&e,16); p=e+1; } } return Status::ok(); } };
struct D : Dataset { Geometry g; DataOptions o; const Geometry& geometry() const override {return g;} uint32_t slots() const override {return feature_counts(o).slots;} uint32_t dense() const override {return 13;}
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t b, uint32_t e) const override { auto r=std::make_unique<R>(); std::ifstream in(g.files[g.blocks[b].file].path,std::ios::binary); in.seekg(g.blocks[b].begin); r->s.resize(g.blocks[b].end-g.blocks[b].begin); in.read(r->s.data(),r->s.size()); uint32_t at=0; for(uint32_t i=0;i<g.blocks[b].records;++i){ r->st.push_back(at); const void*nl=memchr(r->s.data()+at,'\n',r->s.size()-at); at=nl?(const char*)nl-r->s.data()+1:r->s.size(); } r->order=block_order(g,b,e); r->o=o; r->bs=g.batch_size; r->first=g.blocks[b].first_record; return std::unique_ptr<BlockReader>(std::move(r)); } };
Result<std::unique_ptr<Dataset>> Dataset::open(const Geometry& g, const DataOptions& o) { auto d=std::make_unique<D>(); d->g=g; d->o=o; return std::unique_ptr<Dataset>(std::move(d)); }
}
