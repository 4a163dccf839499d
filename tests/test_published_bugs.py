"""Bugs that were published of positional encodings, and traps in their authors' code: each is met by a test named here.

A test is written as file::name, from this folder; `contract::name` is a property that every scheme is held to,
`oracle::scheme` its equation in plain Python, for all of its sampled settings, and `golden::family` a file of the
authors' own numbers. Where code and paper differ, both are there by a setting.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from posenc.contract import PROPERTIES
from tests import night

HERE = Path(__file__).parent
ROPE, XL, KERNELS, ALIBI = (f"schemes/test_{n}.py::test_" for n in ("rope", "transformer_xl", "kernels", "alibi"))
T5, TABLES, SCALED, LENGTH = (
    f"schemes/test_{n}.py::test_" for n in ("t5", "tables", "scaled_rope", "scaled_by_length")
)
ROWS, TWO, SINE, HEAT = (f"schemes/test_{n}.py::test_" for n in ("rows", "rerope", "sinusoidal", "temperature"))
ATTEND, ADAPT, TRAIN = "contract/test_attention.py::test_", "test_adapters.py::test_", "lab/test_train.py::test_"
PLACES, TOLD, FAR = (f"test_{n}.py::test_" for n in ("coordinates", "coordinates_told", "distances"))

DEBERTA, INKLING = (f"schemes/test_{n}.py::test_" for n in ("deberta", "inkling"))

BUGS = {
    1: (
        "angles in half precision: positions collide",
        ROPE + "angles_in_a_bfloat16_model_are_those_of_float32",
        SINE + "a_bfloat16_model_adds_float32_sinusoids",
        "test_rotation.py::test_float32_angles_of_whole_positions_are_exact_however_far",
        "contract::bfloat16_loses_no_position",
    ),
    2: (
        "one layout of pairs taken for the other",
        ROPE + "the_layouts_are_one_scheme_after_a_permutation_of_both_sides_and_not_of_one",
        "test_rotation.py::test_the_layouts_pair_the_features_they_say",
        "huggingface/test_permuting.py::test_permuted_weights_give_equal_attention_in_the_other_layout",
        "golden::rotary",
    ),
    3: (
        "dynamic NTK: cached keys turned with an older base",
        LENGTH + "a_cache_turns_all_keys_anew",
        "contract::cached_decoding_equals_the_full_forward",
    ),
    4: (
        "dynamic NTK: the base not taken back for a shorter text",
        LENGTH + "up_to_the_original_length_it_is_rope_to_the_bit",
        "contract::no_state_is_kept",
    ),
    5: (
        "a dynamic base computed for one length alone",
        "oracle::dynamic_ntk",
        "golden::rope_scaling",
    ),
    6: ("positions doubled where no scaling was asked for", SCALED + "a_factor_of_1_is_rope"),
    7: (
        "YaRN's factor twice, not at all, or an explicit one ignored",
        SCALED + "yarn_sharpens_every_score_by_the_square_of_its_factor_once",
        "golden::rope_scaling",
    ),
    8: (
        "LongRoPE changes its factors in the middle of a text",
        LENGTH + "long_factors_hold_for_every_token_of_a_longer_text",
        LENGTH + "short_factors_hold_up_to_and_including_the_original_length",
        LENGTH + "a_cache_turns_all_keys_anew",
    ),
    9: (
        "dynamic RoPE keeps the long table at exactly the original length",
        LENGTH + "up_to_the_original_length_it_is_rope_to_the_bit",
        "contract::no_state_is_kept",
    ),
    10: ("a table kept without its offset", ROPE + "no_table_is_kept_between_calls"),
    11: (
        "xPos: a centre that moves with the length, while cached keys do not",
        "schemes/test_xpos.py::test_a_key_keeps_its_value_when_the_sequence_grows",
        "contract::cached_decoding_equals_the_full_forward",
    ),
    12: (
        "a cache scrambles what is generated",
        TWO + "a_stored_key_is_never_turned_again",
        ADAPT + "decoding_through_a_module_is_the_full_forward",
        "contract::cached_decoding_equals_the_full_forward",
        "contract::cached_decoding_takes_positions",
    ),
    13: (
        "a bias that ignores the cache or the memory",
        XL + "memory_and_then_a_segment_is_one_sequence_down_to_the_first_slot_of_memory",
        "contract::cached_decoding_equals_the_full_forward",
        "contract::a_block_of_queries_is_part_of_the_square",
    ),
    14: (
        "T5's bias added between two sequences, or weights taken for it",
        T5 + "one_table_serves_all_layers_and_no_other_sequence",
        ATTEND + "a_scheme_of_one_sequence_refuses_two",
        "contract::hooks_run_once_in_order",
    ),
    15: (
        "wrong buckets of T5",
        T5 + "buckets_are_those_of_a_logarithm_in_whole_numbers",
        T5 + "a_bucket_off_by_one_would_be_noticed",
        "golden::t5_bias",
    ),
    16: (
        "buckets of T5 by another logarithm, or in low precision",
        T5 + "compiled_or_not_a_border_distance_falls_into_the_same_bucket",
        T5 + "buckets_are_those_of_a_logarithm_in_whole_numbers",
    ),
    17: (
        "Transformer-XL's shift shows other rows where the future is seen, or lengths differ",
        XL + "the_widened_product_is_the_gathered_form_also_where_lengths_differ_and_keys_lie_ahead",
        "contract::a_block_of_queries_is_part_of_the_square",
    ),
    18: (
        "a mask off by one hides the first slot of memory",
        XL + "memory_and_then_a_segment_is_one_sequence_down_to_the_first_slot_of_memory",
        ATTEND + "masks_and_documents_are_those_of_the_loop",
    ),
    19: (
        "DeBERTa: the sign or the index of position-to-content",
        "oracle::deberta",
        "golden::deberta",
    ),
    20: (
        "DeBERTa: a setting that is taken and does nothing",
        DEBERTA + "every_setting_changes_the_scores",
        DEBERTA + "settings_that_would_have_no_effect_are_refused",
    ),
    21: (
        "slopes of ALiBi for heads that are no power of two, or off by one exponent",
        ALIBI + "slopes_are_those_of_the_paper_for_every_number_of_heads_to_128",
        ALIBI + "a_wrong_slope_would_be_noticed",
        "golden::alibi",
    ),
    22: (
        "slopes that are not cut where heads are spread over devices",
        ALIBI + "heads_on_two_devices_keep_their_own_slopes",
        "contract::grouped_queries_equal_repeated_keys",
    ),
    23: (
        "ALiBi with padding, in half precision, and its key-only form where the future is seen",
        ALIBI + "the_key_only_form_is_alibi_after_softmax_and_under_a_causal_mask_only",
        "contract::padding_changes_nothing",
        ALIBI + "far_apart_the_penalty_is_still_exact_where_the_key_only_form_is_not",
        "contract::scores_are_single_precision",
    ),
    24: (
        "left padding moves positions",
        "models/test_transformer.py::test_padding_changes_nothing_and_is_seen_by_nobody",
        "contract::padding_changes_nothing",
        "contract::padding_inside_is_passed_over",
        "contract::cached_decoding_equals_the_full_forward",
    ),
    25: (
        "packing: positions run on, or documents see each other",
        "test_segment_scans.py::test_sums_restart_with_each_document_and_pass_over_padding",
        "schemes/test_fox.py::test_the_sum_restarts_with_each_document_exactly",
        ROWS + "gates_of_tokens_that_are_not_seen_are_nothing",
        "contract::packed_equals_separate",
        "contract::documents_do_not_leak",
    ),
    26: (
        "rows that see nothing: NaN, or the mean of all values",
        HEAT + "a_query_that_sees_nothing_stays_zero_with_zero_gradient",
        "contract::rows_that_see_nothing_are_zero",
        "contract::nan_in_padding_stays_there",
    ),
    27: (
        "no gradient, or a wrong one, of a bias in fused attention",
        "models/test_transformer.py::test_the_gradient_of_a_shared_table_is_the_sum_over_layers",
        "contract::gradients_are_those_of_the_function",
        "golden::attention",
    ),
    28: (
        "decoding from a prompt of several tokens; a cache of a wrong size",
        "contract/test_decoding.py::test_a_whole_cache_never_overwrites",
        ADAPT + "decoding_through_linen_is_the_full_forward",
        "contract::cached_decoding_equals_the_full_forward",
    ),
    29: (
        "an index beyond a table gives its last row",
        TABLES + "a_position_without_a_row_is_refused_with_both_numbers",
        TABLES + "a_longer_sequence_than_the_table_is_refused_without_positions_too",
        TABLES + "inside_jit_a_position_without_a_row_is_nan_and_the_others_are_themselves",
    ),
    30: (
        "NaN or infinite slopes at distance 0, and at ties",
        KERNELS + "gradients_are_finite_at_distance_0_even_with_respect_to_positions",
        KERNELS + "a_power_without_its_guard_would_be_noticed",
        KERNELS + "where_the_query_stands_at_the_threshold_the_slope_of_fire_lies_between_those_of_both_sides",
        TWO + "the_slope_of_tapa_is_finite_at_distance_0",
        "schemes/test_path.py::test_features_of_nothing_have_a_finite_gradient",
        "schemes/test_grape.py::test_a_direction_of_nothing_has_a_finite_gradient",
        "contract::gradients_hold_at_distance_zero",
    ),
    31: (
        "Sandwich without its cosine, or without its last frequency",
        "oracle::sandwich",
        "golden::sandwich",
    ),
    32: (
        "a scheme at work where none was asked for, with a base of 0",
        ROPE + "a_base_without_frequencies_is_refused",
        ADAPT + "nobody_gets_nope_in_silence",
    ),
    33: (
        "numbers that change with the batch, or with what is trained beside them",
        TRAIN + "the_order_and_number_of_trials_change_no_bit",
        "contract::parameter_sets_stack",
        "contract::examples_are_independent",
    ),
}
"""What went wrong in published code, by its number R-n, and what would notice it here."""

TRAPS = {
    1: (
        "randomized relative positions look up indices beyond their table",
        FAR + "as_released_the_token_itself_and_all_later_keys_share_one_distance",
        "golden::randomized",
    ),
    2: (
        "random positions: how often they are drawn, and whether positions or distances are",
        FAR + "granularity_is_one_draw_for_each_layer_or_pass_and_for_each_batch_or_example",
        PLACES + "a_draw_serves_all_layers_unless_each_has_its_own",
        PLACES + "each_says_whether_a_draw_serves_the_batch_or_one_example",
        PLACES + "the_same_key_draws_the_same_and_another_does_not_in_evaluation_too",
        TRAIN + "random_positions_are_drawn_for_each_trial_and_part_of_the_examples",
    ),
    3: (
        "ALiBi where the future is seen",
        "oracle::alibi",
        ALIBI + "slopes_learned_by_their_logarithm_start_where_they_are_fixed_and_stay_above_zero",
        ALIBI + "slopes_learned_through_a_logistic_start_anywhere_near_an_eighth",
        ALIBI + "the_key_only_form_is_alibi_after_softmax_and_under_a_causal_mask_only",
        "golden::randomized",
    ),
    4: (
        "slopes of 12 heads",
        ALIBI + "slopes_are_those_of_the_paper_for_every_number_of_heads_to_128",
        ALIBI + "a_wrong_slope_would_be_noticed",
    ),
    5: (
        "three layouts of sinusoids",
        SINE + "halves_are_interleaved_up_to_a_permutation_and_t2t_is_another_function",
        SINE + "the_slowest_wavelength_of_t2t_is_exactly_the_base",
        "golden::sinusoidal",
    ),
    6: (
        "two layouts of rotations",
        ROPE + "the_layouts_are_one_scheme_after_a_permutation_of_both_sides_and_not_of_one",
        "golden::rotary",
    ),
    7: (
        "a part of the features is not a part of the frequencies",
        ROPE + "p_keeps_the_highest_frequencies_of_the_whole_head_which_is_no_fraction",
        "golden::rope_context",
    ),
    8: (
        "the scale of scores differs by scheme",
        T5 + "scores_are_not_divided_by_the_root_of_the_width",
        TRAIN + "scores_start_alike_whatever_the_scheme_scales_by",
        ATTEND + "attend_refuses_what_two_sums_disagree_on",
        SCALED + "yarn_sharpens_every_score_by_the_square_of_its_factor_once",
        "oracle::deberta",
        INKLING + "without_profiles_scores_are_divided_by_the_width_of_a_head",
        "schemes/test_tupe.py::test_the_relative_bias_is_its_own_for_t5s_scale_is_another",
        "schemes/test_fox.py::test_cable_is_fox_with_the_opposite_gate_up_to_the_scale_of_its_scores",
        "golden::tupe",
    ),
    9: (
        "FIRE's threshold is halved in a port",
        KERNELS + "fire_takes_its_threshold_from_the_model_and_starts_with_what_it_declares",
        "golden::fire",
        "golden::dape",
    ),
    10: (
        "Sandwich's frequencies start at 0 or at 1",
        "oracle::sandwich",
        "golden::sandwich",
    ),
    11: (
        "xPos is not stable under a cache as released",
        "schemes/test_xpos.py::test_a_key_keeps_its_value_when_the_sequence_grows",
        "schemes/test_xpos.py::test_positions_whose_factors_leave_float32_are_refused_and_no_number_inside_jit",
    ),
    12: (
        "KERPLE projects its parameters",
        KERNELS + "below_its_bound_a_parameter_of_kerple_acts_at_the_bound_and_learns_from_there",
        "golden::kerple",
    ),
    13: (
        "PaTH scales the forget gate too",
        "schemes/test_path.py::test_a_forget_gate_that_is_not_scaled_is_fox_added",
        "golden::path",
    ),
    14: (
        "SHAPE is evaluated from an offset, not from 0",
        PLACES + "an_offset_is_one_more_than_the_largest_in_evaluation_or_zero_if_told",
        "golden::augmented_sinusoidal",
    ),
    15: (
        "CoPE: what gates are made of, and whether position logits are divided",
        ROWS + "what_is_added_is_divided_as_the_products_are_or_not_at_all",
        ROWS + "the_listing_makes_gates_of_what_other_schemes_added_and_the_code_does_not",
        "golden::cope",
    ),
    16: (
        "BiPE multiplies slopes by 96, and a separator belongs to the segment that it ends",
        "oracle::alibi",
        TOLD + "a_separator_belongs_to_the_segment_that_it_ends",
        TOLD + "bilevel_encoding_is_a_sum_of_two_schemes",
        "golden::coordinates",
    ),
    17: ("SelfExtend shifts by a true quotient", TWO + "self_extend_shifts_by_a_true_quotient", "golden::rerope"),
    18: (
        "temperatures of Llama 4 and Inkling: which layers, which position, what they multiply",
        "oracle::llama4",
        "oracle::inkling",
        "golden::temperature",
        "golden::inkling",
    ),
    19: (
        "whether heads share Shaw's vectors",
        "schemes/test_shaw.py::test_heads_share_vectors_only_when_asked",
        "golden::shaw",
    ),
    20: (
        "an average over unseen lengths that leaves out the first of them",
        "lab/test_stats.py::test_a_cell_keeps_the_training_range_of_its_own_records",
        "lab/test_stats.py::test_each_metric_reads_its_own_counts",
    ),
}
"""What costs a wrong comparison if it is missed in the authors' own code, and what would notice it here."""

EVERY = [
    pytest.param(entry, id=f"{kind}-{n}")
    for kind, table in (("R", BUGS), ("trap", TRAPS))
    for n, entry in table.items()
]


@functools.cache
def named_in(file):
    """The names of the tests in a file of this folder of which cases run with every change."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    decorators = {t.name: " ".join(ast.unparse(d) for d in t.decorator_list) for t in tests}
    late = re.compile(r"skip|xfail|nightly" + (r"|mark\.ci.*parametrize" if night.family_of(file) else ""))
    return {name for name, text in decorators.items() if not late.search(text)}


def guards():
    """Every test that is named here."""
    return {test for table in (BUGS, TRAPS) for _, *tests in table.values() for test in tests}


def missing(reference):
    """Why a reference names nothing that runs, or nothing."""
    where, name = reference.split("::")
    if where == "contract":
        return "" if name in {f.__name__ for f in PROPERTIES} else "no property of the contract"
    if where == "oracle":
        return "" if (HERE / "oracles" / f"{name}.py").exists() else "no equation"
    if where == "golden":
        both = HERE / "golden" / f"{name}.npz", HERE / "golden" / "adapters" / f"{name}.py"
        return "" if all(path.exists() for path in both) else "no golden file with an adapter"
    if not (HERE / where).exists():
        return "no file"
    return "" if name in named_in(where) else "no test of that file"


@pytest.mark.parametrize("entry", EVERY)
def test_a_published_bug_is_met_by_tests_that_exist(entry):
    what, *references = entry
    assert what and references
    absent = {r: why for r in references if (why := missing(r))}
    assert not absent


def test_every_number_is_in_the_tables():
    assert list(BUGS) == list(range(1, 34)) and list(TRAPS) == list(range(1, 21))


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("contract::it_is_fine", "no property of the contract"),
        ("golden::nobody", "no golden file with an adapter"),
        ("oracle::nobody", "no equation"),
        ("schemes/test_nothing.py::test_it", "no file"),
        (ROPE + "it_is_fine", "no test of that file"),
    ],
)
def test_a_test_that_was_renamed_or_lost_is_noticed(reference, why):
    assert missing(reference) == why
