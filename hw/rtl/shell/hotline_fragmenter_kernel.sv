// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// The fragmenter kernel: the shell with the fragmenter core.
///
/// CLEAR, LEARN, FRAGMENT, DUMP, LOAD and EVICT; docs/architecture.md, sections 4 and 6.
///
///   s_axi_control --> hotline_shell <--job_*, res_*, AXI--> hotline_fragmenter
///                       |     ^
///                       v     m_* (AXI4, id 0, INCR, size of the bus)
///                  interrupt_o
///
/// Throughput, latency, stalls, errors, reset: those of hotline_shell and hotline_fragmenter.
module hotline_fragmenter_kernel
  import hotline_pkg::*;
#(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits          = 64,
  /// Geometry of the EAL.
  parameter int unsigned EalSets          = 16,
  parameter int unsigned EalWays          = 16,
  parameter int unsigned EalBanks         = 2,
  /// Depth of the cold tracker.
  parameter int unsigned ColdRowsMax      = 128,
  /// Most lookups of a sample.
  parameter int unsigned LookupsMax       = 64,
  /// Cold lookups that the tracker takes per cycle.
  parameter int unsigned ColdLanes        = 1,
  /// Longest burst, in beats.
  parameter int unsigned BurstBeats       = 16,
  /// Bursts in flight, at most.
  parameter int unsigned ReadOutstanding  = 16,
  parameter int unsigned WriteOutstanding = 16,
  /// Clock of the build, for the identity.
  parameter int unsigned ClockKhz         = 100_000,
  /// First 32 bits of the hash of the sources, for the identity.
  parameter logic [31:0] BuildId          = 32'd0,
  localparam int unsigned StrbBits        = BusBits / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  output logic                interrupt_o,

  input  logic                s_axi_control_awvalid,
  output logic                s_axi_control_awready,
  input  logic [11:0]         s_axi_control_awaddr,
  input  logic [2:0]          s_axi_control_awprot,
  input  logic                s_axi_control_wvalid,
  output logic                s_axi_control_wready,
  input  logic [31:0]         s_axi_control_wdata,
  input  logic [3:0]          s_axi_control_wstrb,
  output logic                s_axi_control_bvalid,
  input  logic                s_axi_control_bready,
  output logic [1:0]          s_axi_control_bresp,
  input  logic                s_axi_control_arvalid,
  output logic                s_axi_control_arready,
  input  logic [11:0]         s_axi_control_araddr,
  input  logic [2:0]          s_axi_control_arprot,
  output logic                s_axi_control_rvalid,
  input  logic                s_axi_control_rready,
  output logic [31:0]         s_axi_control_rdata,
  output logic [1:0]          s_axi_control_rresp,

  output logic                m_ar_valid_o,
  input  logic                m_ar_ready_i,
  output logic [63:0]         m_ar_addr_o,
  output logic [7:0]          m_ar_len_o,
  input  logic                m_r_valid_i,
  output logic                m_r_ready_o,
  input  logic [BusBits-1:0]  m_r_data_i,
  input  logic [1:0]          m_r_resp_i,
  input  logic                m_r_last_i,
  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  output logic [63:0]         m_aw_addr_o,
  output logic [7:0]          m_aw_len_o,
  output logic                m_w_valid_o,
  input  logic                m_w_ready_i,
  output logic [BusBits-1:0]  m_w_data_o,
  output logic [StrbBits-1:0] m_w_strb_o,
  output logic                m_w_last_o,
  input  logic                m_b_valid_i,
  output logic                m_b_ready_o,
  input  logic [1:0]          m_b_resp_i
);

  localparam logic [31:0] Operations =
      32'd1 << OpClear | 32'd1 << OpLearn | 32'd1 << OpFragment |
      32'd1 << OpDump | 32'd1 << OpLoad | 32'd1 << OpEvict;

  logic                job_valid;
  logic                job_ready;
  logic [7:0]          job_operation;
  logic [63:0]         job_ids;
  logic [63:0]         job_offsets;
  logic [63:0]         job_indices;
  logic [63:0]         job_popular;
  logic [63:0]         job_nonpopular;
  logic [63:0]         job_bitmap;
  logic [63:0]         job_cold;
  logic [31:0]         job_lookups;
  logic [31:0]         job_samples;
  logic [31:0]         job_bags;
  logic [31:0]         job_lookups_per_sample;
  logic [31:0]         job_total_rows;
  logic [31:0]         job_pinned_rows;
  logic [31:0]         job_cold_base;
  logic [31:0]         job_cold_rows_max;
  logic [31:0]         job_flags;
  logic                abort;
  logic                res_valid;
  logic                res_ready;
  logic [7:0]          res_status;
  logic [7:0]          res_reason;
  logic [31:0]         res_epoch;
  logic [31:0]         res_samples;
  logic [31:0]         res_popular;
  logic [31:0]         res_cold_rows;
  logic [31:0]         res_pinned_lookups;
  logic [31:0]         res_eal_lookups;
  logic [31:0]         res_cold_lookups;
  logic [31:0]         res_lookups;
  logic [31:0]         res_stalls;
  logic [31:0]         res_error_sample;
  logic [31:0]         res_error_lookup;
  logic [63:0]         res_error_value;
  logic [31:0]         epoch;
  logic                core_ar_valid;
  logic                core_ar_ready;
  logic [63:0]         core_ar_addr;
  logic [7:0]          core_ar_len;
  logic                core_r_valid;
  logic                core_r_ready;
  logic [BusBits-1:0]  core_r_data;
  logic [1:0]          core_r_resp;
  logic                core_r_last;
  logic [63:0]         core_r_addr;
  logic                core_aw_valid;
  logic                core_aw_ready;
  logic [63:0]         core_aw_addr;
  logic [7:0]          core_aw_len;
  logic                core_w_valid;
  logic                core_w_ready;
  logic [BusBits-1:0]  core_w_data;
  logic [StrbBits-1:0] core_w_strb;
  logic                core_w_last;
  logic                core_b_valid;
  logic                core_b_ready;
  logic [1:0]          core_b_resp;
  logic [63:0]         core_b_addr;
  logic                stat_busy;
  logic                stat_stall_read;
  logic                stat_stall_write;
  logic                stat_stall_bank;
  logic                stat_stall_tracker;

  hotline_shell #(
    .Operations      (Operations),
    .BusBits         (BusBits),
    .EalSets         (EalSets),
    .EalWays         (EalWays),
    .LookupsMax      (LookupsMax),
    .ColdRowsMax     (ColdRowsMax),
    .BurstBeats      (BurstBeats),
    .ReadOutstanding (ReadOutstanding),
    .WriteOutstanding(WriteOutstanding),
    .ClockKhz        (ClockKhz),
    .BuildId         (BuildId)
  ) u_shell (
    .clk_i,
    .rst_ni,
    .interrupt_o,
    .s_axi_control_awvalid,
    .s_axi_control_awready,
    .s_axi_control_awaddr,
    .s_axi_control_awprot,
    .s_axi_control_wvalid,
    .s_axi_control_wready,
    .s_axi_control_wdata,
    .s_axi_control_wstrb,
    .s_axi_control_bvalid,
    .s_axi_control_bready,
    .s_axi_control_bresp,
    .s_axi_control_arvalid,
    .s_axi_control_arready,
    .s_axi_control_araddr,
    .s_axi_control_arprot,
    .s_axi_control_rvalid,
    .s_axi_control_rready,
    .s_axi_control_rdata,
    .s_axi_control_rresp,
    .job_valid_o             (job_valid),
    .job_ready_i             (job_ready),
    .job_operation_o         (job_operation),
    .job_ids_o               (job_ids),
    .job_offsets_o           (job_offsets),
    .job_indices_o           (job_indices),
    .job_popular_o           (job_popular),
    .job_nonpopular_o        (job_nonpopular),
    .job_bitmap_o            (job_bitmap),
    .job_cold_o              (job_cold),
    .job_records_o           (),
    .job_store_o             (),
    .job_lookups_o           (job_lookups),
    .job_samples_o           (job_samples),
    .job_bags_o              (job_bags),
    .job_lookups_per_sample_o(job_lookups_per_sample),
    .job_total_rows_o        (job_total_rows),
    .job_pinned_rows_o       (job_pinned_rows),
    .job_cold_base_o         (job_cold_base),
    .job_cold_rows_max_o     (job_cold_rows_max),
    .job_record_bytes_o      (),
    .job_segments_o          (),
    .job_segment_shift_o     (),
    .job_flags_o             (job_flags),
    .abort_o                 (abort),
    .res_valid_i             (res_valid),
    .res_ready_o             (res_ready),
    .res_status_i            (res_status),
    .res_reason_i            (res_reason),
    .res_epoch_i             (res_epoch),
    .res_samples_i           (res_samples),
    .res_popular_i           (res_popular),
    .res_cold_rows_i         (res_cold_rows),
    .res_pinned_lookups_i    (res_pinned_lookups),
    .res_eal_lookups_i       (res_eal_lookups),
    .res_cold_lookups_i      (res_cold_lookups),
    .res_lookups_i           (res_lookups),
    .res_stalls_i            (res_stalls),
    .res_error_sample_i      (res_error_sample),
    .res_error_lookup_i      (res_error_lookup),
    .res_error_value_i       (res_error_value),
    .epoch_i                 (epoch),
    .core_ar_valid_i         (core_ar_valid),
    .core_ar_ready_o         (core_ar_ready),
    .core_ar_addr_i          (core_ar_addr),
    .core_ar_len_i           (core_ar_len),
    .core_r_valid_o          (core_r_valid),
    .core_r_ready_i          (core_r_ready),
    .core_r_data_o           (core_r_data),
    .core_r_resp_o           (core_r_resp),
    .core_r_last_o           (core_r_last),
    .core_r_addr_o           (core_r_addr),
    .core_aw_valid_i         (core_aw_valid),
    .core_aw_ready_o         (core_aw_ready),
    .core_aw_addr_i          (core_aw_addr),
    .core_aw_len_i           (core_aw_len),
    .core_w_valid_i          (core_w_valid),
    .core_w_ready_o          (core_w_ready),
    .core_w_data_i           (core_w_data),
    .core_w_strb_i           (core_w_strb),
    .core_w_last_i           (core_w_last),
    .core_b_valid_o          (core_b_valid),
    .core_b_ready_i          (core_b_ready),
    .core_b_resp_o           (core_b_resp),
    .core_b_addr_o           (core_b_addr),
    .stat_busy_i             (stat_busy),
    .stat_stall_read_i       (stat_stall_read),
    .stat_stall_write_i      (stat_stall_write),
    .stat_stall_bank_i       (stat_stall_bank),
    .stat_stall_tracker_i    (stat_stall_tracker),
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_ar_addr_o,
    .m_ar_len_o,
    .m_r_valid_i,
    .m_r_ready_o,
    .m_r_data_i,
    .m_r_resp_i,
    .m_r_last_i,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_aw_addr_o,
    .m_aw_len_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_w_data_o,
    .m_w_strb_o,
    .m_w_last_o,
    .m_b_valid_i,
    .m_b_ready_o,
    .m_b_resp_i
  );

  hotline_fragmenter #(
    .BusBits         (BusBits),
    .EalSets         (EalSets),
    .EalWays         (EalWays),
    .EalBanks        (EalBanks),
    .ColdRowsMax     (ColdRowsMax),
    .LookupsMax      (LookupsMax),
    .ColdLanes       (ColdLanes),
    .BurstBeats      (BurstBeats),
    .ReadOutstanding (ReadOutstanding),
    .WriteOutstanding(WriteOutstanding)
  ) u_core (
    .clk_i,
    .rst_ni,
    .job_valid_i             (job_valid),
    .job_ready_o             (job_ready),
    .job_operation_i         (job_operation),
    .job_ids_i               (job_ids),
    .job_offsets_i           (job_offsets),
    .job_indices_i           (job_indices),
    .job_popular_i           (job_popular),
    .job_nonpopular_i        (job_nonpopular),
    .job_bitmap_i            (job_bitmap),
    .job_cold_i              (job_cold),
    .job_lookups_i           (job_lookups),
    .job_samples_i           (job_samples),
    .job_bags_i              (job_bags),
    .job_lookups_per_sample_i(job_lookups_per_sample),
    .job_total_rows_i        (job_total_rows),
    .job_pinned_rows_i       (job_pinned_rows),
    .job_cold_base_i         (job_cold_base),
    .job_cold_rows_max_i     (job_cold_rows_max),
    .job_flags_i             (job_flags),
    .abort_i                 (abort),
    .res_valid_o             (res_valid),
    .res_ready_i             (res_ready),
    .res_status_o            (res_status),
    .res_reason_o            (res_reason),
    .res_epoch_o             (res_epoch),
    .res_samples_o           (res_samples),
    .res_popular_o           (res_popular),
    .res_cold_rows_o         (res_cold_rows),
    .res_pinned_lookups_o    (res_pinned_lookups),
    .res_eal_lookups_o       (res_eal_lookups),
    .res_cold_lookups_o      (res_cold_lookups),
    .res_lookups_o           (res_lookups),
    .res_stalls_o            (res_stalls),
    .res_error_sample_o      (res_error_sample),
    .res_error_lookup_o      (res_error_lookup),
    .res_error_value_o       (res_error_value),
    .epoch_o                 (epoch),
    .idle_o                  (),
    .m_ar_valid_o            (core_ar_valid),
    .m_ar_ready_i            (core_ar_ready),
    .m_ar_addr_o             (core_ar_addr),
    .m_ar_len_o              (core_ar_len),
    .m_r_valid_i             (core_r_valid),
    .m_r_ready_o             (core_r_ready),
    .m_r_data_i              (core_r_data),
    .m_r_resp_i              (core_r_resp),
    .m_r_last_i              (core_r_last),
    .m_r_addr_i              (core_r_addr),
    .m_aw_valid_o            (core_aw_valid),
    .m_aw_ready_i            (core_aw_ready),
    .m_aw_addr_o             (core_aw_addr),
    .m_aw_len_o              (core_aw_len),
    .m_w_valid_o             (core_w_valid),
    .m_w_ready_i             (core_w_ready),
    .m_w_data_o              (core_w_data),
    .m_w_strb_o              (core_w_strb),
    .m_w_last_o              (core_w_last),
    .m_b_valid_i             (core_b_valid),
    .m_b_ready_o             (core_b_ready),
    .m_b_resp_i              (core_b_resp),
    .m_b_addr_i              (core_b_addr),
    .stat_busy_o             (stat_busy),
    .stat_stall_read_o       (stat_stall_read),
    .stat_stall_write_o      (stat_stall_write),
    .stat_stall_bank_o       (stat_stall_bank),
    .stat_stall_tracker_o    (stat_stall_tracker)
  );

endmodule
