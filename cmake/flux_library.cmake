# flux_library(name DEPS <flux libraries> EXTERNAL <imported targets>)
#
# One call in flux/<name>/CMakeLists.txt declares the library, the only flux libraries it may
# include, and everything that keeps it honest:
#   - headers are reachable only through build/include/<name>, so including a library that is not
#     among DEPS (or their DEPS) does not compile;
#   - with FLUX_TESTS: a link test (whole archive + declared dependencies, nothing else), a check
#     that every header compiles alone, and one test program made of all *_test.cc beside the code.
# tools/tidy.py additionally refuses an include whose library is not listed in DEPS itself.
function(flux_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXTERNAL" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/flux/main/flux\\.cc$")  # the binary itself
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)

  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view}/flux)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/flux/${name} SYMBOLIC)

  set(target flux_${name})
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND flux_)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${view})
    target_link_libraries(${target} PUBLIC ${deps} ${ARG_EXTERNAL})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${view})
    target_link_libraries(${target} INTERFACE ${deps} ${ARG_EXTERNAL})
  endif()

  if(NOT FLUX_TESTS)
    return()
  endif()
  if(sources)
    set(main ${CMAKE_BINARY_DIR}/link_test_main.cc)
    if(NOT EXISTS ${main})
      file(WRITE ${main} "int main() { return 0; }\n")
    endif()
    add_executable(link_test_${name} ${main})
    target_link_libraries(link_test_${name} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${target}>")
  endif()
  if(headers)
    set(alone "")
    foreach(header ${headers})
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${header})
      string(MAKE_C_IDENTIFIER ${path} id)
      set(unit ${CMAKE_BINARY_DIR}/header_alone/${id}.cc)
      set(text "#include \"${path}\"\n")
      set(old "")
      if(EXISTS ${unit})
        file(READ ${unit} old)
      endif()
      if(NOT old STREQUAL text)
        file(WRITE ${unit} "${text}")
      endif()
      list(APPEND alone ${unit})
    endforeach()
    add_library(header_alone_${name} OBJECT ${alone})
    target_link_libraries(header_alone_${name} PRIVATE ${target})
    target_compile_options(header_alone_${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
    target_compile_definitions(header_alone_${name} PRIVATE FLUX_SOURCE_DIR=".")  # never run
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${target} GTest::gtest GTest::gtest_main)
    # Only those that read files of the tree know where it is, so that ccache can share the others.
    foreach(test ${tests})
      file(STRINGS ${test} reads REGEX "FLUX_SOURCE_DIR|(script_test|test_files|test_increments)\\.h")
      if(reads)
        set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS
                     FLUX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
      endif()
    endforeach()
    target_compile_options(${name}_test PRIVATE -O1)  # half of what -O3 takes to build
    add_test(NAME unit.${name} COMMAND ${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 600)
  endif()
endfunction()
