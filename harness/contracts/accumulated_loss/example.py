import torch


def accumulated_loss(micro_batches):
    masks = [batch["mask"] for batch in micro_batches]
    tokens = sum(mask.sum() for mask in masks).clamp(min=1)
    loss = torch.zeros(())
    for batch, mask in zip(micro_batches, masks):
        losses = batch["token_losses"].masked_fill(~mask, 0)
        loss = loss + losses.sum() / tokens
    return loss
