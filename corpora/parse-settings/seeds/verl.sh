N=8
python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
  actor_rollout_ref.rollout.n=$N data.train_batch_size=$((N * 16)) "${EXTRA[@]}"
